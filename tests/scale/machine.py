"""What a process has cost, and what the API server has heard from it."""

import json
import os
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, users: [operator]}
- {level: None}
"""
WRITES = ("create", "update", "patch", "delete")
BESIDE = ("events", "leases")
"""What is counted apart from the writes that do the work."""


@dataclass(frozen=True, slots=True)
class Cost:
    """From one moment to another."""

    seconds: float
    cpu: float
    others: Mapping[str, float]
    """Name → seconds of the processor of a process beside it."""
    requests: Counter[tuple[str, str]]
    """Verb and resource, status/RESOURCE where it is the subresource → number."""

    @property
    def writes(self) -> int:
        return sum(n for (verb, of), n in self.requests.items() if verb in WRITES and of not in BESIDE)

    @property
    def reads(self) -> int:
        return sum(n for (verb, of), n in self.requests.items() if verb in ("get", "list") and of not in BESIDE)


class Meter:
    """Of one process: `since` is asked for what was spent after the last `begin`."""

    def __init__(self, pid: int, audit: Path, others: Mapping[str, int]) -> None:
        self.pid = pid
        self.audit = audit
        self.others = others
        self.begin()

    def begin(self) -> None:
        self._at, self._cpu = time.monotonic(), cpu(self.pid)
        self._others = {name: cpu(pid) for name, pid in self.others.items()}
        self._offset = self.audit.stat().st_size if self.audit.exists() else 0

    def from_the_beginning(self) -> None:
        """Of the process: what it has cost before counts, too."""
        self.begin()
        self._cpu = 0.0

    def cost(self) -> Cost:
        others = {name: cpu(pid) - self._others[name] for name, pid in self.others.items()}
        return Cost(time.monotonic() - self._at, cpu(self.pid) - self._cpu, others, self._requests())

    def _requests(self) -> Counter[tuple[str, str]]:
        found = Counter[tuple[str, str]]()
        with self.audit.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if line.endswith(b"\n"):
                    event = json.loads(line)
                    of = event.get("objectRef") or {}
                    sub = f"{of['subresource']}/" if "subresource" in of else ""
                    found[event["verb"], f"{sub}{of.get('resource', '')}"] += 1
        return found


def cpu(pid: int) -> float:
    """Seconds of the processor, user and system, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def at_rest(pid: int, seconds: float = 1.0) -> bool:
    """Whether it has done its imports, and then next to nothing for so long."""
    began, spent = time.monotonic(), cpu(pid)
    time.sleep(seconds)
    return spent > 0.5 and cpu(pid) - spent < 0.03 * (time.monotonic() - began)


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def memory(pid: int) -> tuple[float, float]:
    """Resident now, and the most that it was: MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    resident, peak = (int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[index]
    return resident, peak


def passes(port: int, kind: str = "speculativedeployments") -> int:
    """How many reconciles of this kind the operator at this metrics port has ended. The whole page has 15 lines for
    each deployment, and would be most of what the operator does while it is asked."""
    name = "paceline_reconcile_seconds_count"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?name[]={name}", timeout=5) as page:
            text = page.read().decode()
    except OSError:
        return 0
    found = re.search(rf'^{name}\{{kind="{kind}"\}} (\S+)', text, re.MULTILINE)
    return int(float(found[1])) if found else 0


def load() -> float:
    """The machine's, of the last minute."""
    return os.getloadavg()[0]
