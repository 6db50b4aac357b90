"""What this machine has for runs. Looks at /proc, /sys and the scheduler.

Starts nothing, but nvidia-smi where the driver has no files.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from submit.fleet import FLEET_VERSION, LOCAL, Fleet, Queue
from submit.local.records import Seat

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GPUS = Path("/proc/driver/nvidia/gpus")
_UNLIMITED = 1 << 60
_SPARE_MIB = 256
"""What the system keeps of the memory at least; a twentieth on a large machine."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What there is: cores that this process may use and GPUs by number, memory in MiB."""

    name: str
    arch: str
    cores: tuple[int, ...]
    memory_mib: int
    gpus: tuple[int, ...] = ()
    gpu_model: str | None = None

    @property
    def room(self) -> Seat:
        """All of it, for runs."""
        return Seat(cores=self.cores, gpus=self.gpus, memory_mib=self.memory_mib)


def this_machine(environ: Mapping[str, str]) -> Machine:
    """The machine, as far as this process may use it: affinity and a container's limits count."""
    arch = os.uname().machine
    gpus = _visible(_find_gpus(), environ.get("CUDA_VISIBLE_DEVICES"))
    total = min(_memory_mib(), _limit("memory.max", "memory/memory.limit_in_bytes") >> 20)
    return Machine(
        name=machine_name(),
        arch={"aarch64": "arm64"}.get(arch, arch),
        cores=tuple(sorted(os.sched_getaffinity(0)))[: _cpu_quota()],
        memory_mib=max(1, total - max(_SPARE_MIB, total // 20)),
        gpus=tuple(gpus),
        gpu_model=next(iter(gpus.values()), None),
    )


def machine_name() -> str:
    """A name that stays this machine's: of its id, which is told to nobody, or its host name."""
    identity = _text(Path("/etc/machine-id")).strip()
    if identity:
        return "machine-" + hashlib.sha256(f"runfleet {identity}".encode()).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9]+", "-", os.uname().nodename).strip("-").lower() or "machine"


def boot_id() -> str:
    """What tells this start of the machine from all others."""
    return _text(BOOT_ID).strip()


def local_fleet(machine: Machine, secrets: Mapping[str, str]) -> Fleet:
    """The machine as a fleet of one queue, named local. `secrets` has what jobs may ask for."""
    queue = Queue(
        arn=LOCAL,
        instance_type="this machine",
        arch=machine.arch,
        vcpus=len(machine.cores),
        memory_mib=machine.memory_mib,
        gpus=len(machine.gpus),
        gpu_model=machine.gpu_model,
        max_vcpus=len(machine.cores),
    )
    return Fleet(
        version=FLEET_VERSION,
        stack=LOCAL,
        account=LOCAL,
        region=machine.name,
        queues={LOCAL: queue},
        job_role_arn=LOCAL,
        execution_role_arn=LOCAL,
        log_group=LOCAL,
        secrets=dict(secrets),
    )


def _find_gpus() -> dict[int, str]:
    """Models by nvidia-smi's number, which is the order on the PCI bus."""
    found = []
    for folder in sorted(_GPUS.iterdir()) if _GPUS.is_dir() else ():
        told = dict(
            line.split(":", 1) for line in _text(folder / "information").splitlines() if ":" in line
        )
        minor = told.get("Device Minor", "").strip()
        if Path(f"/dev/nvidia{minor}").exists():  # a container may have some of them only
            found.append(told.get("Model", "GPU").strip())
    return dict(enumerate(found)) or _ask_nvidia_smi()


def _ask_nvidia_smi() -> dict[int, str]:
    """For systems whose driver has no files (Windows Subsystem for Linux)."""
    if not Path("/dev/dxg").exists():
        return {}
    import subprocess  # noqa: PLC0415 # slow to import, and rarely needed

    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [line.partition(",") for line in done.stdout.splitlines()]
    return {int(index): name.strip() for index, _, name in rows if index.strip().isdigit()}


def _visible(gpus: Mapping[int, str], chosen: str | None) -> dict[int, str]:
    """Those that CUDA_VISIBLE_DEVICES leaves: its numbers up to the first that is none."""
    if chosen is None:
        return dict(gpus)
    left: dict[int, str] = {}
    for part in chosen.split(","):
        if not part.strip().isdigit() or int(part) not in gpus:
            break
        left[int(part)] = gpus[int(part)]
    return left


def _memory_mib() -> int:
    match = re.search(r"MemTotal:\s+(\d+) kB", _text(Path("/proc/meminfo")))
    return int(match[1]) >> 10 if match else 1024


def _cpu_quota() -> int | None:
    """How many cores a container's limit allows; None without one (cgroup v2, cpu.max)."""
    quota, _, period = _text(Path("/sys/fs/cgroup/cpu.max")).strip().partition(" ")
    return max(1, int(quota) // int(period)) if quota.isdigit() and period.isdigit() else None


def _limit(*names: str) -> int:
    texts = [_text(Path("/sys/fs/cgroup") / name).strip() for name in names]
    return min([int(text) for text in texts if text.isdigit()], default=_UNLIMITED)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
