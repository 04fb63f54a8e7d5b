"""Interruptions for a pool's clients: servers that are replaced, and a server lent to a run.

Derived from what the planners apply in a simulated cluster (`plan.forecast`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paceline.core.manifest import Object
from paceline.core.names import POOL_LABEL
from paceline.plan.deployment.servers import pod_template
from paceline.render.serving import ARM_LABEL, REVISION_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A change of a pool's servers while they serve. `servers`: requested; `down`: how many are away at a time, each
    for `seconds`; 0 if a new server starts beside them first."""

    pool: str
    what: str
    """`roll-out of wide`, or `loan to its run`."""
    servers: int
    down: int
    seconds: float
    lent: bool = False


@dataclass(kw_only=True)
class Watch:
    """The servers of each pool as last applied. `start_seconds`: time until a server is ready."""

    start_seconds: float
    found: list[Interruption] = field(default_factory=list)
    _rolling: dict[str, str] = field(default_factory=dict)
    """Pool → the revision being rolled out."""
    _lent: dict[str, datetime] = field(default_factory=dict)

    def applied(self, before: Object | None, after: Object, ready: int, now: datetime) -> None:
        """`before`: the previous servers, `ready` of them ready; `after`: the servers that the planner wants."""
        pool = after["metadata"]["labels"][POOL_LABEL]
        more = _asked(after) - (_asked(before) if before else _asked(after))
        if more < 0:
            self._lent[pool] = now
        if more > 0 and pool in self._lent:
            seconds = (now - self._lent.pop(pool)).total_seconds() + self.start_seconds
            self._add(pool, "loan to its run", after, seconds, lent=True)
        label = _label(after, REVISION_LABEL)
        if before is not None and ready and label != _label(before, REVISION_LABEL):
            self._rolling[pool] = label
        if self._rolling.get(pool) == label and _in_place(after):
            del self._rolling[pool]
            self._add(pool, f"roll-out of {_label(after, ARM_LABEL)}", after, self.start_seconds)

    def over(self, servers: Mapping[str, Object]) -> tuple[Interruption, ...]:
        """All interruptions, and an entry for each roll-out without one. `servers`: each pool's at the end."""
        return (*self.found, *self._unnoticed(servers))

    def _unnoticed(self, servers: Mapping[str, Object]) -> Iterator[Interruption]:
        for pool in self._rolling:
            what, asked = f"roll-out of {_label(servers[pool], ARM_LABEL)}", servers[pool]["spec"].get("replicas", 1)
            yield Interruption(pool=pool, what=what, servers=asked, down=0, seconds=0.0)

    def _add(self, pool: str, what: str, servers: Object, seconds: float, lent: bool = False) -> None:
        asked = servers["spec"].get("replicas", 1)
        self.found.append(Interruption(pool=pool, what=what, servers=asked, down=1, seconds=seconds, lent=lent))


def _label(servers: Object, name: str) -> str:
    return str(pod_template(servers)["metadata"]["labels"].get(name, ""))


def _asked(servers: Object) -> int:
    return int(servers["spec"].get("replicas", 1))


def _in_place(servers: Object) -> bool:
    """Whether a server ends before its successor starts: no surge, as for our LeaderWorkerSets."""
    rolling = servers["spec"].get("strategy", {}).get("rollingUpdate", {})
    return not rolling.get("maxSurge")
