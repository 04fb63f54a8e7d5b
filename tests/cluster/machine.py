"""What a cluster could leave on a machine, read from /proc, /sys and the programs that show it."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

# What the kubelet, kube-proxy, a CNI plugin or the systemd of a container would set for everyone.
SYSCTLS = (
    "fs/file-max",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
# Where Kubernetes, containerd and CNI put things unless told otherwise.
DIRECTORIES = ("/etc", "/opt", "/opt/cni", "/run", "/run/netns", "/usr/libexec", "/var/lib", "/var/log", "/var/tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All of it at one moment, as lines to compare."""

    mounts: frozenset[str]
    links: frozenset[str]
    routes: frozenset[str]
    cgroups: frozenset[str]
    iptables: frozenset[str]
    sysctls: frozenset[str]
    files: frozenset[str]


def machine() -> Machine:
    return Machine(
        mounts=frozenset(Path("/proc/mounts").read_text().splitlines()),
        links=frozenset(re.findall(r"^\d+: ([^:@]+)", _output("ip", "-o", "link"), re.MULTILINE)),
        routes=frozenset(_output("ip", "route", "show", "table", "all").splitlines()),
        cgroups=frozenset(str(path) for root in cgroup_hierarchies() for path in root.iterdir() if path.is_dir()),
        iptables=frozenset(_rules(_output("iptables-save"))),
        sysctls=frozenset(f"{name} = {Path('/proc/sys', name).read_text().strip()}" for name in SYSCTLS),
        files=frozenset(str(path) for top in map(Path, DIRECTORIES) if top.is_dir() for path in top.iterdir()),
    )


def differences(before: Machine, after: Machine) -> list[str]:
    """A line for all that is there and was not (+), or was and is not (-)."""
    found: list[str] = []
    for field in fields(Machine):
        old, new = getattr(before, field.name), getattr(after, field.name)
        found += [f"+ {field.name}: {line}" for line in sorted(new - old)]
        found += [f"- {field.name}: {line}" for line in sorted(old - new)]
    return found


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a cluster. The start time (clock ticks since boot) tells it from a later one with its number."""

    pid: int
    started: int
    namespaces: frozenset[str]


def processes_of(cluster: str) -> frozenset[Process]:
    """All processes in the cgroups of a cluster's nodes, those of containers included."""
    pids = {
        int(pid)
        for root in cgroup_hierarchies()
        for node in root.glob(f"{cluster}-[0-9]")
        for procs in node.rglob("cgroup.procs")
        for pid in _read(procs).split()
    }
    return frozenset(process for pid in pids if (process := _process(pid)))


def alive(processes: Iterable[Process]) -> list[Process]:
    return [process for process in processes if (now := _process(process.pid)) and now.started == process.started]


def holders(namespaces: frozenset[str]) -> list[int]:
    """Processes that keep one of these namespaces."""
    return [pid for pid in _pids() if _namespaces(pid) & namespaces]


def mentions(text: str) -> list[str]:
    """Command lines of processes that name this, in their arguments or their environment."""
    found = (Path("/proc", str(pid)) for pid in _pids())
    return [_read(p / "cmdline") for p in found if text in _read(p / "cmdline") or text in _read(p / "environ")]


def cgroup_hierarchies() -> list[Path]:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return [Path(mount[1]) for mount in mounts if mount[2] in ("cgroup", "cgroup2")]


def _rules(saved: str) -> Iterator[str]:
    """Rules and chains without their comments and counters."""
    for line in saved.splitlines():
        if not line.startswith("#"):
            yield re.sub(r" ?\[\d+:\d+\]", "", line)


def _process(pid: int) -> Process | None:
    fields_after_name = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    if not fields_after_name or fields_after_name[0] == "Z":
        return None
    return Process(pid, int(fields_after_name[19]), _namespaces(pid))


def _namespaces(pid: int) -> frozenset[str]:
    try:
        return frozenset(str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in ("mnt", "net"))
    except OSError:
        return frozenset()


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it ended
        return ""


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
