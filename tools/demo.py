"""`make demo`: a fleet from a real Pulumi, a real experiment on it, a clean end.

All on this machine: the sandbox stands for AWS. Each step prints the command that it runs, so
that a reader can type the same. Whatever fails, no process and no file is left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import psutil
from demo_folder import demo_folder, leftovers

from sandbox.inventory import list_account

ROOT = Path(__file__).resolve().parent.parent
SHOWN_NAMES = 2
"""Of each kind of resource, in the list of what the stack had made."""
EXAMPLE = "python examples/cem.py"
RUN = f"submit run --queue c6g-medium-spot --seeds 3 --env-ids CartPole-v1,Acrobot-v1 -- {EXAMPLE}"
INTERRUPTED = "interrupted"


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
        orphans = psutil.Process().children(recursive=True)
        for orphan in orphans:
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()
        psutil.wait_procs(orphans, timeout=5)

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
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    _adopt_orphans()
    end_leftovers()
    with demo_folder() as folder:
        demo = Demo(folder)
        why = _why_it_ended(demo)
    if why:
        print(f"\ndemo: {why}; all was taken down. Once more:\n    make demo", file=sys.stderr)
        return 130 if why == INTERRUPTED else 1
    print(f"\n{_bold('Done')} in {sum(seconds for _, seconds in demo.times):.0f} s")
    for title, seconds in demo.times:
        print(f"  {seconds:5.1f} s  {title}")
    return 0


def end_leftovers() -> None:
    """Takes down what demos that were killed have left."""
    with leftovers() as folders:
        for folder in folders:
            Demo(folder).end()
            shutil.rmtree(folder)


def _why_it_ended(demo: Demo) -> str | None:
    """Plays, takes down in any case, and tells what went wrong."""
    try:
        play(demo)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as err:  # noqa: BLE001 # whatever it was, it is told and the rest taken down
        return f"step «{demo.title}» failed: {err}"
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave the half of it
        demo.end()
    return None


def _prove_nothing_left(left: set[tuple[str, str]], made: set[tuple[str, str]]) -> None:
    # Definitions are submit's: they hold nothing, and are used again by the next run.
    definitions = sorted(name for kind, name in left if kind == "job definition")
    left = {thing for thing in left if thing[0] != "job definition"}
    print(f"\nThe stack had made {len(made)} things in the account:")
    kinds = sorted({kind for kind, _ in made})
    for kind in kinds:
        names = sorted(name for k, name in made if k == kind)
        more = ", …" if len(names) > SHOWN_NAMES else ""
        print(f"  {len(names):3}  {kind}: {', '.join(names[:SHOWN_NAMES])}{more}")
    print(f"Of these {_bold(f'{len(left & made)} are left')}.")
    if definitions:
        print(f"What `submit` keeps for the next run, at no cost: {', '.join(definitions)}")
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


def _adopt_orphans() -> None:
    """What loses its parent, such as the language host of a killed Pulumi, comes to this process
    (Linux only, prctl(2)).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


if __name__ == "__main__":
    sys.exit(main())
