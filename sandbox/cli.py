"""`python -m sandbox up|down|status|env|fault …`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import msgspec

from sandbox import client, guard, lifecycle
from sandbox.admission import admit
from sandbox.batch.containers import ENGINES
from sandbox.errors import SandboxError
from sandbox.faults import KINDS
from sandbox.state import Options, State, read_state


def _folder(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Path:
    return Path(value or os.environ.get("RUNFLEET_SANDBOX_DIR") or ".sandbox").resolve()


folder_option = click.option(
    "--dir",
    "folder",
    metavar="DIR",
    callback=_folder,
    help="The sandbox's folder.  [default: RUNFLEET_SANDBOX_DIR, else .sandbox]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A local AWS: Batch that really runs the jobs, and what a fleet needs around it.

    Jobs run as processes of yours, with your rights, on this machine.
    """


@main.command()
@folder_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="[default: a free one]")
@click.option("--region", default="us-east-1", show_default=True)
@click.option(
    "--slots",
    type=click.IntRange(1, 1024),
    default=os.cpu_count() or 1,
    show_default="the machine's cores",
    help="Jobs that run at a time.",
)
@click.option(
    "--image-root",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    default=".",
    help="The folder whose files every job finds in its own.  [default: this folder]",
)
@click.option(
    "--stop-timeout",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="Seconds from SIGTERM to SIGKILL.",
)
@click.option(
    "--boot",
    type=click.FloatRange(0, 3600),
    default=0.2,
    show_default=True,
    help="Seconds until a launched instance takes jobs.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0.5, 86_400),
    default=5.0,
    show_default=True,
    help="Seconds that an instance without jobs is kept.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0, 10_000, min_open=True),
    default=1.0,
    show_default=True,
    help="How much faster the sandbox's clock goes.",
)
@click.option(
    "--executor",
    type=click.Choice(["process", *ENGINES]),
    default="process",
    show_default=True,
    help="What runs the jobs: this machine itself, or containers of their images.",
)
@click.option("--memory-limits", is_flag=True, help="End jobs that use more than they asked for.")
@click.option(
    "--state",
    "state_dir",
    metavar="DIR",
    type=click.Path(file_okay=False, resolve_path=True),
    help="Keep what the account holds there, beyond `down`.",
)
@click.option("--foreground", is_flag=True, help="Stay; Ctrl-C ends it.")
def up(
    folder: Path,
    port: int,
    region: str,
    slots: int,
    image_root: Path,
    stop_timeout: float,
    boot: float,
    idle: float,
    speed: float,
    executor: str,
    memory_limits: bool,  # noqa: FBT001 # click passes by name
    state_dir: str | None,
    foreground: bool,  # noqa: FBT001 # click passes by name
) -> None:
    """Start the sandbox."""
    options = Options(
        folder=str(folder),
        port=port,
        region=region,
        slots=slots,
        image_root=str(image_root),
        grace_s=stop_timeout,
        engine=None if executor == "process" else executor,
        boot_s=boot,
        idle_s=idle,
        speed=speed,
        memory_limits=memory_limits,
        state_dir=state_dir,
    )
    if foreground:
        sys.exit(lifecycle.run(options, ready=lambda state: _tell(folder, state, "up")))
    state, fresh = lifecycle.start(options)
    _tell(folder, state, "up" if fresh else "already running")


@main.command()
@folder_option
def down(folder: Path) -> None:
    """End the sandbox, all its jobs, and all that it remembers."""
    if lifecycle.stop(folder):
        click.echo("the sandbox is down")
    else:
        click.echo(f"no sandbox is running in {folder}", err=True)


@main.command()
@folder_option
@json_option
def status(folder: Path, as_json: bool) -> None:  # noqa: FBT001 # click passes by name
    """Tell whether it runs, and what it does."""
    state = _running(folder)
    facts = _control(folder, "GET", "status")
    if as_json:
        click.echo(json.dumps(facts | {"port": state.port, "dir": str(folder)}))
        return
    click.echo(
        f"up at http://127.0.0.1:{state.port} for {facts['uptime']} s, {facts['jobs']} jobs, "
        f"{len(facts['running'])} running in {facts['slots']} slots"
    )


@main.command()
@folder_option
def page(folder: Path) -> None:
    """Print the address of the status page: queues, instances, jobs, logs, faults."""
    state = _running(folder)
    click.echo(f"http://127.0.0.1:{state.port}/?key={state.key}")


@main.command()
@folder_option
def env(folder: Path) -> None:
    """Print what points boto3, the AWS CLI, Pulumi and submit here: eval "$(… env)"."""
    state = _running(folder)
    variables = admit(folder, state)
    for name in client.UNSET:
        click.echo(f"unset {name}")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")


@main.group()
def fault() -> None:
    """Make the next calls fail, or take a machine away."""


@fault.command("add", epilog="\b\n" + "\n".join(f"{k:<9} {v}" for k, v in KINDS.items()))
@folder_option
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--service", default="batch", show_default=True, help="`*` is any.")
@click.option("--operation", default="*", show_default=True, help="As AWS names it: SubmitJob.")
@click.option("--count", type=click.IntRange(1), default=1, show_default=True)
@click.option("--after", type=click.IntRange(0), default=0, show_default=True)
@click.option("--seconds", type=click.FloatRange(0), default=0.0, help="For latency.")
def fault_add(folder: Path, **fault: Any) -> None:
    """Strike the next COUNT calls that match, after letting AFTER through."""
    _control(folder, "POST", "faults", fault)


@fault.command("interrupt")
@folder_option
@click.argument("job_id")
@click.option(
    "--notice",
    type=click.FloatRange(0, 86_400),
    default=0.0,
    show_default=True,
    help="Seconds of notice, seen at the instance's metadata endpoint.",
)
def fault_interrupt(folder: Path, job_id: str, notice: float) -> None:
    """Take the instance under a running job away, as Spot does."""
    answer = _control(folder, "POST", "interrupt", {"jobId": job_id, "notice": notice})
    how = f"goes in {notice:g} s" if notice else "is gone"
    click.echo(f"the instance {answer['instance']} {how}")


@fault.command("set")
@folder_option
@click.option("--capacity", multiple=True, metavar="TYPE=N", help="EC2 has N instances of it.")
@click.option("--interruptions-per-hour", type=float, help="Of each Spot instance from now on.")
@click.option("--seed", type=int, help="Makes the interruptions repeatable.")
@click.option("--notice", "notice_s", type=float, help="Seconds before an interruption.")
@click.option("--lag", "lag_s", type=float, help="Seconds until DescribeJobs knows a job.")
@click.option("--rates/--no-rates", default=None, help="Throttle at AWS's rates of calls.")
@click.option("--no-image", metavar="IMAGE", help="Can't be pulled; `*` at the end is any.")
def fault_set(folder: Path, capacity: tuple[str, ...], **settings: Any) -> None:
    """Change what lasts; what is not named stays. `fault clear` calms all."""
    changes: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    if capacity:
        now = _control(folder, "GET", "conditions")["capacity"]
        changes["capacity"] = now | dict(map(_capacity, capacity))
    click.echo(json.dumps(_control(folder, "POST", "conditions", changes)))


@fault.command("list")
@folder_option
def fault_list(folder: Path) -> None:
    """Show the faults that struck and those that wait."""
    click.echo(json.dumps(_control(folder, "GET", "faults"), indent=1))


@fault.command("clear")
@folder_option
def fault_clear(folder: Path) -> None:
    """Forget the faults that wait, and calm all conditions."""
    _control(folder, "DELETE", "faults")
    _control(folder, "DELETE", "conditions")


@main.command()
@folder_option
@click.option("--advance", type=click.FloatRange(0), default=0.0, help="Seconds to skip.")
@click.option("--speed", type=click.FloatRange(0, 10_000, min_open=True), help="How much faster.")
def clock(folder: Path, advance: float, speed: float | None) -> None:
    """Tell the sandbox's time; skip some of it, or make it faster."""
    answer = _control(folder, "POST", "clock", {"advance": advance, "speed": speed})
    at = datetime.fromtimestamp(answer["now"], tz=timezone.utc)
    click.echo(f"{at:%Y-%m-%d %H:%M:%S} UTC, {answer['speed']:g} times as fast as usual")


@main.command("_guard", hidden=True)
@click.argument("options")
def run_guard(options: str) -> None:
    """Watch over the server."""
    sys.exit(guard.guard(msgspec.json.decode(options, type=Options)))


@main.command("_server", hidden=True)
@click.argument("options")
def run_server(options: str) -> None:
    """Answer."""
    guard.serve(msgspec.json.decode(options, type=Options))


def _capacity(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if not name or not count.isdigit():
        raise click.BadParameter(f"{text!r}: give TYPE=N, as c6g.medium=0", param_hint="--capacity")
    return name, int(count)


def _running(folder: Path) -> State:
    state = read_state(folder)
    if state is None:
        option = _dir_option(folder)
        raise SandboxError(f"no sandbox is running in {folder}: python -m sandbox up{option}")
    return state


def _control(folder: Path, method: str, name: str, body: Any = None) -> Any:
    state = _running(folder)
    return client.control(state.port, state.key, method, name, body)


def _tell(folder: Path, state: State, how: str) -> None:
    click.echo(f"the sandbox is {how} at http://127.0.0.1:{state.port} ({folder})")
    click.echo(f'  eval "$(python -m sandbox env{_dir_option(folder)})"')


def _dir_option(folder: Path) -> str:
    usual = folder == _folder(None, None, None)  # type: ignore[arg-type] # neither is looked at
    return "" if usual else f" --dir {shlex.quote(str(folder))}"
