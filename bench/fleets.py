"""What a fleet's life costs, by its size: python bench/fleets.py [TYPES ...]. Nothing is asserted.

Each fleet gets a sandbox and a Pulumi home of its own. Calls are those that reach the account, from
the program and the provider; the engine itself makes none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from infra.catalog import parse_catalog  # noqa: E402 # found from here
from infra.data import instance_types_csv  # noqa: E402 # likewise
from sandbox.provider.plugin import install  # noqa: E402 # likewise
from sandbox.testing import Running, running  # noqa: E402 # likewise

SIZES = (1, 6, 25)
FAMILIES = ("c5", "c6g", "m5", "m6g", "r5", "r6g", "c5a", "m5a", "r5a")


def main(sizes: Sequence[int]) -> None:
    print(f"import of the program, without engine and AWS: {_import_s():.2f} s")
    print(f"{'types':>5}  {'step':12} {'seconds':>8} {'calls':>6}")
    for size in sizes:
        with running() as sandbox, tempfile.TemporaryDirectory(prefix="runfleet-bench-") as folder:
            Life(sandbox, Path(folder)).measure(size)


class Life:
    """A project and a stack for one fleet."""

    def __init__(self, sandbox: Running, project: Path) -> None:
        self._sandbox = sandbox
        self._project = project
        for name in ("Pulumi.yaml", "__main__.py", "infra/plugin/pulumi-resource-runfleet-jobs"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, project / name)
        (project / ".venv").symlink_to(sys.prefix)
        (sandbox.dir / "pulumi").mkdir()
        own = {k: v for k, v in os.environ.items() if not re.match("AWS_|PULUMI_|RUNFLEET_", k)}
        here = os.pathsep.join(
            [str(ROOT / ".pulumi-bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        )
        self._environment = {**own, **sandbox.env(), "PATH": here}
        install(Path(self._environment["PULUMI_HOME"]))

    def measure(self, size: int) -> None:
        names = _types(size)
        # A type more would be too many for the account: the last one comes later.
        first = names[:-1] if size > 1 else names
        self._run("stack", "init", "bench")
        self._configure(first)
        self._step(len(first), "up")
        self._step(len(first), "up again")
        if size > 1:
            self._configure(names)
            self._step(size, "one type more")
        self._step(size, "destroy")

    def _configure(self, names: Sequence[str]) -> None:
        (self._project / "Pulumi.bench.yaml").write_text(
            f"config:\n  aws:region: us-east-1\n  runfleet:instanceTypes: {','.join(names)}\n"
        )

    def _step(self, size: int, step: str) -> None:
        verb = "destroy" if step == "destroy" else "up"
        before = sum(self._sandbox.calls().values())
        begin = time.perf_counter()
        self._run(verb, "--yes", "--skip-preview", "--stack", "bench")
        seconds = time.perf_counter() - begin
        calls = sum(self._sandbox.calls().values()) - before
        print(f"{size:5}  {step:12} {seconds:8.1f} {calls:6}", flush=True)

    def _run(self, *arguments: str) -> None:
        command = ["pulumi", *arguments, "--non-interactive", "--color", "never"]
        subprocess.run(
            command,
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def _types(size: int) -> list[str]:
    """That many small types which every zone of the sandbox offers."""
    catalog = parse_catalog(instance_types_csv())
    found = [t.name for t in catalog.values() if t.family in FAMILIES and t.vcpus <= 8]  # noqa: PLR2004 # small
    return sorted(found)[:size]


def _import_s() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import infra.program"], cwd=ROOT, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
