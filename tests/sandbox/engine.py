"""A container engine that is none: it takes the commands of docker, and runs a container's command here.

Run as a program, with STAND_IN in its environment: a folder for its containers. Each command line
is a line in `calls` there, and none may hold what a test calls secret.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

TAKES_NONE = {
    "--follow",
    "--init",
    "--read-only",
    "--privileged",
    "--quiet",
    "--all",
    "--force",
    "--volumes",
}


def install(folder: Path) -> None:
    """Puts `docker` into the folder `bin` of that one."""
    program = folder / "bin" / "docker"
    program.parent.mkdir(parents=True)
    home = folder / "containers"
    home.mkdir()
    (home / "calls").touch()
    program.write_text(f'#!/bin/sh\nSTAND_IN={home} exec "{sys.executable}" -S "{__file__}" "$@"\n')
    program.chmod(0o755)


def calls(folder: Path) -> list[list[str]]:
    """The command lines so far."""
    text = (folder / "containers" / "calls").read_text()
    return [json.loads(line) for line in text.splitlines()]


def left(folder: Path) -> list[str]:
    """The containers that have not been removed."""
    return [path.name for path in (folder / "containers").iterdir() if path.is_dir()]


def main(home: Path, words: list[str]) -> None:
    with (home / "calls").open("a") as out:
        out.write(json.dumps(words) + "\n")
    verb, *rest = words
    options, names = split(rest)
    folders = [home / name for name in names]
    said: dict[str, Callable[[], str | None]] = {
        "ps": lambda: listed(home, options.get("--filter")),
        "image": lambda: need(names[-1]),
        "pull": lambda: need(names[-1]),
        "create": lambda: create(home / options["--name"][0], options, names),
        "start": lambda: start(folders[0]),
        "logs": lambda: follow(folders[0]),
        "wait": lambda: str(code_of(folders[0])),
        "stop": lambda: stop(folders[0], float(options["-t"][0])),
        "inspect": lambda: state(folders[0]),
        "rm": lambda: remove(folders),
    }
    sys.stdout.write(said[verb]() or "")


def need(image: str) -> None:
    if image.startswith("missing"):
        sys.exit(f"Error: {image}: not found")


def state(folder: Path) -> str:
    code = code_of(folder)
    return json.dumps({"Status": "exited", "ExitCode": code, "OOMKilled": False})


def remove(folders: list[Path]) -> None:
    for folder in folders:
        kill(folder, signal.SIGKILL)
        subprocess.run(["rm", "-rf", folder], check=True)


def split(words: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Options, and what follows them."""
    options: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        takes = words[at] not in TAKES_NONE
        options.setdefault(words[at], []).append(words[at + 1] if takes else "")
        at += 1 + takes
    return options, words[at:]


def listed(home: Path, filters: list[str] | None) -> str:
    folders = [path for path in home.iterdir() if (path / "labels").exists()]
    return "\n".join(path.name for path in folders if wanted(path, filters))


def wanted(folder: Path, filters: list[str] | None) -> bool:
    labels = json.loads((folder / "labels").read_text())
    return not filters or filters[0].removeprefix("label=") in labels


def create(folder: Path, options: dict[str, list[str]], rest: list[str]) -> None:
    environment = {"PATH": os.environ["PATH"]}
    for path in options.get("--env-file", []):
        pairs = (line.partition("=") for line in Path(path).read_text().splitlines())
        environment |= {name: value for name, _, value in pairs}
    environment |= {name: os.environ[name] for name in options.get("--env", [])}
    folder.mkdir()
    (folder / "labels").write_text(json.dumps(options["--label"]))
    (folder / "what").write_text(json.dumps([rest[1:], environment]))


RUNNER = """
import json, os, subprocess, sys
folder, = sys.argv[1:]
command, environment = json.load(open(folder + "/what"))
with open(folder + "/log", "wb") as log:
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder,
                               stdin=subprocess.DEVNULL, start_new_session=True)
print(process.pid, flush=True)
code = process.wait()
with open(folder + "/code.part", "w") as out:
    out.write(str(code if code >= 0 else 128 - code))
os.rename(folder + "/code.part", folder + "/code")
"""


def start(folder: Path) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert runner.stdout
    pid = runner.stdout.readline()
    if not pid:
        command = json.loads((folder / "what").read_text())[0][0]
        sys.exit(f'Error response from daemon: exec: "{command}": executable file not found')
    (folder / "pid").write_text(pid)


def code_of(folder: Path) -> int:
    while not (folder / "code").exists():
        time.sleep(0.01)
    return int((folder / "code").read_text())


def follow(folder: Path) -> str:
    code_of(folder)
    return (folder / "log").read_text()


def stop(folder: Path, seconds: float) -> None:
    kill(folder, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (folder / "code").exists():
        time.sleep(0.01)
    kill(folder, signal.SIGKILL)
    code_of(folder)


def kill(folder: Path, number: int) -> None:
    if (folder / "pid").exists() and not (folder / "code").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((folder / "pid").read_text()), number)


if __name__ == "__main__":
    main(Path(os.environ["STAND_IN"]), sys.argv[1:])
