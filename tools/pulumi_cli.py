"""Finds a Pulumi CLI with its Python language host, or builds both with Go into .pulumi-bin.

The standard library only: it runs before anything is installed. Pulumi is needed to build a
fleet; `submit` works without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from machine import Missing, answer_of, end_group, say

MINIMUM = (3, 272, 0)
"""The oldest CLI taken: no older than the Python SDK in the lock."""

EXEC_SCRIPT = "pulumi-language-python-exec"
MODULES = {
    "pulumi": ("pulumi-cli", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"),
    "pulumi-language-python": (
        "pulumi-language-python",
        "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",
    ),
}
"""Executable -> folder of its Go module under tools/, package."""

COMMAND = """\
#!/bin/sh
# Activated or not: the language host takes the first Python on PATH.
here=$(dirname "$(realpath "$0")")
PATH="$here:$PATH" exec "$here/../../.pulumi-bin/pulumi" "$@"
"""
"""What `.venv/bin/pulumi` is."""

GO_PLACES = ("/usr/local/go/bin",)
"""Where Go's own instructions put it, which not every PATH has."""


HEARTBEAT_S = 30


class Choice(Enum):
    """Where the CLI comes from."""

    ON_PATH = "on PATH"
    BUILT = "built here"
    TO_BUILD = "to be built here"


def choose(root: Path) -> Choice:
    """The CLI on PATH, else the one built here, else one to build. Raises Missing."""
    found = shutil.which("pulumi", path=_foreign_path(root))
    refusal = _why_not(found, root) if found else "no Pulumi CLI is on PATH"
    if refusal is None:
        return Choice.ON_PATH
    if _is_built(root):
        return Choice.BUILT
    _require_go(root, refusal)
    return Choice.TO_BUILD


def start_builds(
    root: Path, choice: Choice, cleanup: contextlib.ExitStack
) -> list[subprocess.Popen[bytes]]:
    """Starts what is to be built, beside whatever else the set-up does; `cleanup` ends it."""
    if choice is not Choice.TO_BUILD:
        return []
    target = root / ".pulumi-bin"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    go = _go()
    said = answer_of([go, "env", "GOVERSION"], _go_env(root))
    say(f"building the Pulumi CLI {cli_version(root)} with {said}, once (about 4 minutes)")
    log = cleanup.enter_context((target / "build.log").open("ab"))
    builds = []
    for name, (folder, package) in MODULES.items():
        flags = ["-buildvcs=false", "-trimpath", f"-ldflags=-s -w {_version_flag(root)}"]
        build = subprocess.Popen(
            [go, "build", *flags, "-o", target / name, package],
            cwd=root / "tools" / folder,
            env=_go_env(root),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        cleanup.callback(end_group, build)
        builds.append(build)
    return builds


def finish_builds(root: Path, builds: Iterable[subprocess.Popen[bytes]]) -> None:
    """Waits for the builds and marks them as whole. Raises Missing when one failed."""
    builds = list(builds)
    if not builds:
        return
    told = started = time.monotonic()
    while any(build.poll() is None for build in builds):
        time.sleep(0.2)
        if time.monotonic() - told > HEARTBEAT_S:
            told = time.monotonic()
            say(f"still building the Pulumi CLI ({told - started:.0f} s after the packages)")
    target = root / ".pulumi-bin"
    if any(build.returncode for build in builds):
        lines = (target / "build.log").read_text(errors="replace").splitlines()
        said = [line for line in lines if not line.startswith("go: downloading")][-12:]
        raise Missing("\n".join(["go could not build the Pulumi CLI:", *said, _how_to_get()]))
    _copy_exec_script(root, target)
    (target / "built").write_text(_fingerprint(root))


def link(choice: Choice, venv_bin: Path) -> None:
    """Makes the CLI that was built here the one that an activated .venv finds, or takes it away."""
    for name in (*MODULES, EXEC_SCRIPT):
        place = venv_bin / name
        place.unlink(missing_ok=True)
        if choice is Choice.ON_PATH:
            continue
        if name == "pulumi":
            place.write_text(COMMAND)
            place.chmod(0o755)
        else:
            place.symlink_to(Path("..", "..", ".pulumi-bin", name))


def cli_version(root: Path) -> str:
    """The version that is built here, as go.mod pins it."""
    text = (root / "tools" / "pulumi-cli" / "go.mod").read_text()
    found = re.search(r"github\.com/pulumi/pulumi/pkg/v3 v([\d.]+)", text)
    assert found
    return found[1]


def _why_not(found: str, root: Path) -> str | None:
    """Why the CLI on PATH is not taken, None when it is."""
    env = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true", "PATH": _foreign_path(root)}
    said = answer_of([found, "version"], env) or ""
    numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None:
        return f"{found} does not tell its version"
    if tuple(map(int, numbers.groups())) < MINIMUM:
        return f"{found} is {said}, older than {'.'.join(map(str, MINIMUM))}"
    for name in ("pulumi-language-python", EXEC_SCRIPT):
        if not shutil.which(name, path=_foreign_path(root)):
            return f"{found} has no {name} beside it"
    return None


def _foreign_path(root: Path) -> str:
    """PATH without what this set-up itself put there."""
    own = {str(root / ".venv" / "bin"), str(root / ".pulumi-bin")}
    places = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(place for place in places if place not in own)


def _is_built(root: Path) -> bool:
    target = root / ".pulumi-bin"
    if any(not os.access(target / name, os.X_OK) for name in (*MODULES, EXEC_SCRIPT)):
        return False
    with contextlib.suppress(OSError):
        return (target / "built").read_text() == _fingerprint(root)
    return False


def _fingerprint(root: Path) -> str:
    digest = hashlib.sha256()
    for folder, _ in MODULES.values():
        for name in ("go.mod", "go.sum"):
            digest.update((root / "tools" / folder / name).read_bytes())
    return digest.hexdigest()


def _version_flag(root: Path) -> str:
    name = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
    return f"-X {name}=v{cli_version(root)}"


def _copy_exec_script(root: Path, target: Path) -> None:
    """The script by which the language host runs a program; it must fit the Python SDK's age."""
    list_dir = ["list", "-m", "-f", "{{.Dir}}", "github.com/pulumi/pulumi/sdk/v3"]
    module = answer_of([_go(), "-C", root / "tools" / "pulumi-cli", *list_dir], _go_env(root))
    if not module:
        raise Missing(f"go does not tell where its modules are; {_how_to_get()}")
    copy = target / EXEC_SCRIPT
    shutil.copyfile(Path(module) / "python" / "cmd" / EXEC_SCRIPT, copy)
    copy.chmod(0o755)


def _go() -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), *GO_PLACES])
    return shutil.which("go", path=path) or "go"


def _go_env(root: Path) -> dict[str, str]:
    env = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}
    if not env.get("HOME"):
        env["HOME"] = str(root / ".pulumi-bin")  # Go keeps its caches in it
    return env


def _require_go(root: Path, refusal: str) -> None:
    """Raises Missing when there is no Go that can build the CLI."""
    said = answer_of([_go(), "env", "GOVERSION", "GOTOOLCHAIN"], _go_env(root))
    if said is None:
        raise Missing(f"{refusal}, and no Go to build it with. {_how_to_get()}")
    version, toolchain = [*said.splitlines(), "", ""][:2]
    have = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    need = max(_go_needed(root, folder) for folder, _ in MODULES.values())
    # From 1.21 on Go fetches a newer toolchain by itself, unless told not to.
    if have < need and (have < (1, 21) or toolchain == "local"):
        wanted = ".".join(map(str, need))
        raise Missing(
            f"{refusal}, and {version} with GOTOOLCHAIN={toolchain} is too old to build it "
            f"(needs {wanted}). {_how_to_get()}"
        )


def _go_needed(root: Path, folder: str) -> tuple[int, ...]:
    text = (root / "tools" / folder / "go.mod").read_text()
    found = re.search(r"^go ([\d.]+)$", text, re.MULTILINE)
    assert found
    return tuple(int(number) for number in found[1].split("."))


def _how_to_get() -> str:
    minimum = ".".join(map(str, MINIMUM))
    return (
        "Either will do:\n"
        f"  - Pulumi {minimum} or newer:  https://www.pulumi.com/docs/iac/download-install/\n"
        "  - Go 1.26 or newer:  https://go.dev/doc/install\n"
        "Then, in a new shell so that it is on PATH:\n"
        "    make setup"
    )
