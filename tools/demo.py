"""`make demo`: a fleet from a real Pulumi, a real experiment on it, a clean end.

All on this machine: the sandbox stands for AWS. Each step prints the command that it runs, so
that a reader can type the same. Whatever fails, no process and no file is left behind.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from account import list_account

ROOT = Path(__file__).resolve().parent.parent
SHOWN_NAMES = 2
"""Of each kind of resource, in the list of what the stack had made."""
EXAMPLE = "python examples/cem.py"
RUN = f"submit run --queue c6g-medium-spot --seeds 3 --env-ids CartPole-v1,Acrobot-v1 -- {EXAMPLE}"


class Failed(Exception):
    """A step that failed; its words for the user."""


class Demo:
    """Runs commands as a user would type them, in the clone, one sandbox for all."""

    def __init__(self, folder: Path) -> None:
        self.env = dict(os.environ)
        self.env["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{self.env.get('PATH', '')}"
        self.env["RUNFLEET_SANDBOX_DIR"] = str(folder / "sandbox")
        # The command line's own width for tables, where this is no terminal.
        self.env.setdefault("COLUMNS", str(shutil.get_terminal_size((100, 24)).columns))
        self.title = ""
        self.times: list[tuple[str, float]] = []
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A part of the demo under a heading, with its time."""
        self.title = title
        started = time.monotonic()
        print(f"\n{_bold(f'{len(self.times) + 1}. {title}')}", flush=True)
        yield
        self.times.append((title, time.monotonic() - started))

    def type(self, command: str, *, may_fail: bool = False) -> int:
        """Shows the command and runs it. Raises Failed when it fails."""
        print(f"{_bold('$')} {command}", flush=True)
        with self._started(shlex.split(command)) as process:
            code = process.wait()
        if code and not may_fail:
            raise Failed(f"`{command}` ended with exit status {code}")
        return code

    def take_environment(self) -> None:
        """What `eval "$(python -m sandbox env)"` does in a shell."""
        command = 'eval "$(python -m sandbox env)"'
        print(f"{_bold('$')} {command}", flush=True)
        told = subprocess.run(
            ["sh", "-c", command + " && env -0"],
            env=self.env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        pairs = (line.partition("=") for line in os.fsdecode(told).split("\0") if line)
        self.env = {name: value for name, _, value in pairs}

    def end(self) -> None:
        """Ends the command that runs, and the sandbox."""
        if self._process and self._process.poll() is None:
            _end_group(self._process)
        subprocess.run(
            [sys.executable, "-m", "sandbox", "down"],
            env=self.env,
            cwd=ROOT,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextlib.contextmanager
    def _started(self, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        # A group of its own would take the terminal away from progress bars: only without one.
        self._process = subprocess.Popen(
            command, env=self.env, cwd=ROOT, start_new_session=not sys.stdin.isatty()
        )
        try:
            yield self._process
        finally:
            if self._process.poll() is None:
                _end_group(self._process)


def play(demo: Demo) -> None:
    """All steps, in order."""
    with demo.step("A local AWS"):
        print(f"{_bold('$')} export RUNFLEET_SANDBOX_DIR={demo.env['RUNFLEET_SANDBOX_DIR']}")
        demo.type("python -m sandbox up")
        demo.take_environment()
        before = list_account(demo.env)
    with demo.step("A fleet: on-demand and spot queues for four instance types"):
        demo.type("pulumi stack init demo")
        demo.type("pulumi up --yes --skip-preview --suppress-outputs")
        made = list_account(demo.env) - before
        demo.type("submit queues")
    with demo.step("An experiment: six runs, one array job"):
        demo.type(RUN)
        demo.type("submit status latest --watch")
    with demo.step("What became of it"):
        demo.type("submit status latest")
        demo.type("submit logs latest --tail 3")
        demo.type("submit results latest")
    with demo.step("A clean end"):
        demo.type("pulumi destroy --yes --skip-preview")
        _prove_nothing_left(list_account(demo.env) - before, made)
        demo.type("python -m sandbox down")


def main() -> int:
    """The exit status: 0 when all went well."""
    signal.signal(signal.SIGTERM, _interrupted)
    with tempfile.TemporaryDirectory(prefix="runfleet-demo-") as folder:
        demo = Demo(Path(folder))
        try:
            play(demo)
        except (Failed, subprocess.CalledProcessError) as err:
            print(f"\ndemo: step «{demo.title}» failed: {err}", file=sys.stderr)
            print("  all was taken down; once more: make demo", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\ndemo: interrupted; all was taken down", file=sys.stderr)
            return 130
        finally:
            demo.end()
    print(f"\n{_bold('Done')} in {sum(seconds for _, seconds in demo.times):.0f} s")
    for title, seconds in demo.times:
        print(f"  {seconds:5.1f} s  {title}")
    return 0


def _prove_nothing_left(left: set[tuple[str, str]], made: set[tuple[str, str]]) -> None:
    # Definitions are submit's: they hold nothing, and are used again by the next run.
    left = {thing for thing in left if thing[0] != "job definition"}
    print(f"\nThe stack had made {len(made)} things in the account:")
    kinds = sorted({kind for kind, _ in made})
    for kind in kinds:
        names = sorted(name for k, name in made if k == kind)
        more = ", …" if len(names) > SHOWN_NAMES else ""
        print(f"  {len(names):3}  {kind}: {', '.join(names[:SHOWN_NAMES])}{more}")
    print(f"Of these {_bold(f'{len(left & made)} are left')}.")
    if left:
        raise Failed("left in the account: " + ", ".join(sorted(name for _, name in left)))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a command with all that it started: politely, then not."""
    own = os.getpgid(process.pid) == process.pid
    for number, patience in ((signal.SIGINT, 10.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            if own:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


if __name__ == "__main__":
    sys.exit(main())
