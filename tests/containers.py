"""A real container engine, where the system has one: Podman, and an image of busybox.

Some systems start a container by one runtime and not by another, or only with limits that are
given: what works is found out once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

_CAREFUL = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=10000:10000"]
[engine]
runtime = "runc"
"""


class Podman(msgspec.Struct, frozen=True):
    """The variables with which it runs containers here, and an image that nobody else has."""

    environ: dict[str, str]
    image: str

    def containers(self) -> list[str]:
        """Those of the image, running or not."""
        words = ("ps", "--all", "--quiet", "--filter", f"ancestor={self.image}")
        return _call(self.environ, *words).stdout.split()


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Podman, with an image of which nothing stays."""
    if not shutil.which("podman") or not shutil.which("busybox"):
        pytest.skip("podman or busybox is not installed (Debian: apt-get install podman busybox)")
    folder = tmp_path_factory.mktemp("podman")
    image = f"localhost/runfleet-test-{os.getpid()}:1"
    careful = folder / "containers.conf"
    careful.write_text(_CAREFUL)
    # Podman calls programs of the system's own.
    plain = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "RUNFLEET_ENGINE": "podman"}
    _write_image(folder / "image.tar")
    imported = _call(plain, "import", str(folder / "image.tar"), image)
    said, digest = imported.stderr, imported.stdout.strip()
    try:
        for environ in (plain, plain | {"CONTAINERS_CONF": str(careful)}):
            ran = _call(environ, "run", "--rm", "--init", image, "true")
            if ran.returncode == 0:
                yield Podman(environ, image)
                return
            said += ran.stderr
        pytest.skip(f"podman runs no container here: {said.strip()}")
    finally:
        _call(plain, "rmi", "--force", digest or image)


def _write_image(path: Path) -> None:
    """A file system of busybox, and of the libraries that it may need."""
    busybox = shutil.which("busybox")
    assert busybox
    program = Path(busybox).resolve()
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    known = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    with tarfile.open(path, "w") as tar:
        tar.add(program, "bin/busybox")
        for library in {word for word in needed.split() if word.startswith("/")}:
            tar.add(Path(library).resolve(), library.lstrip("/"))
        for applet in set(known.split()) - {"busybox"}:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)


def _call(environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["podman", *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
