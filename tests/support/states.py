"""Every state that a story reaches, and what kubectl, Argo CD and Flux say of it: the tables of docs/states.md."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.health import argocd, flux, kstatus

from paceline.api.reasons import ORDER

Manifest = Mapping[str, Any]
Row = Mapping[str, str]
Reader = Callable[[Manifest], Row | None]
"""An object → what a table shows of it; None if it does not belong there."""

SERVING = ("Ready", "Reconciling")
"""Conditions that a table of servers shows; STATUS has the reason of Stalled."""
OF_A_RUN = ("Complete", "Failed")
DECIDING = tuple(kind for kind in ORDER if kind not in (*SERVING, "Stalled", "CacheReady", *OF_A_RUN))
MOSTLY_TRUE = ("Reconciling", "Failed", "SpeculationDegraded")
"""Conditions that are absent rather than False. Of these a cell says only False, of all others only True."""
COLLECTED = ("Ready", "Reconciling", "SpeculationDegraded", "holds")
"""Columns whose values are collected in one row, where all others are equal."""


@dataclass(slots=True)
class State:
    """A row of a table: the story with the shortest name that reaches it, and the health of the objects in it."""

    shown: dict[str, str]
    story: str
    collected: dict[str, set[str]] = field(default_factory=dict)
    healths: set[tuple[tuple[str, str], ...]] = field(default_factory=set)

    @property
    def row(self) -> Row:
        several = {name: ", ".join(sorted(values - {""})) for name, values in self.collected.items()}
        return {**self.shown, **several, "for example": self.story.replace("_", " ")}


def as_seen(found: Manifest) -> Manifest:
    """Of an object, what makes its state: enough for the readers and tools of this module."""
    seen = {
        "kind": found["kind"],
        "metadata": {"generation": found["metadata"].get("generation", 1)},
        "spec": {"suspend": found["spec"].get("suspend", False)},
    }
    return seen | (
        {"status": {key: found["status"][key] for key in SHOWN & found["status"].keys()}} if "status" in found else {}
    )


SHOWN = {"observedGeneration", "state", "summary", "conditions", "pools", "verdict"}


def words(seen: Manifest) -> str:
    """Equal for two objects in the same state, whatever their messages say."""
    status = seen.get("status", {})
    edited = status.get("observedGeneration") != seen["metadata"]["generation"]
    outcome = status.get("verdict", {}).get("outcome")
    return str([seen["kind"], seen["spec"], status.get("state"), edited, outcome, _conditions_of(seen), _holds(seen)])


def servers(seen: Manifest) -> Row | None:
    """Of a deployment: STATUS, the health, and the conditions about servers."""
    if seen["kind"] != "SpeculativeDeployment":
        return None
    if "status" in seen and not _of_its_spec(seen):
        shown, said = "any, of an older spec", dict.fromkeys(SERVING, "")
    else:
        shown, said = seen.get("status", {}).get("state", "none yet"), dict(_conditions(seen, SERVING))
    return {"STATUS": shown, "Argo CD": health_of(seen)["Argo CD"], **said}


def verdicts(seen: Manifest) -> Row | None:
    """Of a deployment whose status is of its spec: the conditions about runs and verdicts, and the pools' holds."""
    if seen["kind"] != "SpeculativeDeployment" or not _of_its_spec(seen):
        return None
    found = _conditions(seen, DECIDING)
    return {**found, "holds": _holds(seen)} if any(found.values()) else None


def runs(seen: Manifest) -> Row | None:
    """Of a BenchmarkRun: its conditions and its health."""
    if seen["kind"] != "BenchmarkRun":
        return None
    said = _conditions(seen, OF_A_RUN)
    shown = said if any(said.values()) else {**said, "Complete": "none yet"}
    return {**shown, "Argo CD": health_of(seen)["Argo CD"]}


def states(read: Reader, stories: Mapping[str, Iterable[Manifest]]) -> list[State]:
    """Each row once, in the order of its words."""
    found: dict[tuple[str, ...], State] = {}
    for story in sorted(stories, key=lambda name: (len(name), name)):
        for one in stories[story]:
            if (row := read(one)) is None:
                continue
            shown = {name: value for name, value in row.items() if name not in COLLECTED}
            state = found.setdefault(tuple(shown.values()), State(shown, story))
            for name in COLLECTED:
                if name in row:
                    state.collected.setdefault(name, set()).add(row[name])
            state.healths.add(tuple(health_of(one).items()))
    return [found[key] for key in sorted(found)]


_KNOWN: dict[str, Row] = {}
"""The words of a state → what each tool makes of it: Lua takes long for every object of every story."""


def health_of(seen: Manifest) -> Row:
    """`healths`, computed once for each state."""
    key = words(seen)
    if key not in _KNOWN:
        _KNOWN[key] = healths(seen)
    return _KNOWN[key]


def healths(seen: Manifest) -> Row:
    """What each tool makes of it."""
    return {"Argo CD": argocd(seen)[0], "Flux": flux(seen), "kstatus": kstatus(seen)}


def table(rows: Sequence[Row], without: Iterable[str] = ()) -> str:
    """Markdown; a column that no row fills is left out."""
    columns = [name for name in rows[0] if any(row[name] for row in rows) and name not in without]
    lines = [columns, ["---"] * len(columns), *([row[name] for name in columns] for row in rows)]
    return "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + "\n"


def _of_its_spec(seen: Manifest) -> bool:
    return (seen.get("status") or {}).get("observedGeneration") == seen["metadata"]["generation"]


def _holds(seen: Manifest) -> str:
    pools = (seen.get("status") or {}).get("pools", ())
    return ", ".join(sorted({hold["reason"] for pool in pools for hold in pool.get("holds", ())}))


def _conditions_of(seen: Manifest) -> Row:
    conditions = (seen.get("status") or {}).get("conditions", ())
    return {one["type"]: f"{one['status']} {one['reason']}" for one in conditions}


def _conditions(seen: Manifest, kinds: Iterable[str]) -> dict[str, str]:
    """Type → status and reason, without the status that is usual; "" where it is absent."""
    said = _conditions_of(seen)
    return {kind: said.get(kind, "").removeprefix(f"{kind in MOSTLY_TRUE} ") for kind in kinds}
