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

SERVING = ("Ready", "Reconciling", "Stalled", "CacheReady")
"""Conditions about what is served; the others are about what is measured and promoted."""
OF_A_RUN = ("Complete", "Failed")
DECIDING = tuple(kind for kind in ORDER if kind not in (*SERVING, *OF_A_RUN))


@dataclass(slots=True)
class State:
    """A row of a table: the first story (by name) that reaches it, and what each tool says of the objects in it."""

    shown: Row
    story: str
    healths: set[tuple[tuple[str, str], ...]] = field(default_factory=set)

    @property
    def row(self) -> Row:
        tools = [name for name, _ in next(iter(self.healths))]
        said = {tool: ", ".join(sorted({dict(one)[tool] for one in self.healths})) for tool in tools}
        name = self.story.replace("_", " ")
        return {**self.shown, **said, "for example": f"[{name}](../tests/plan/stories/{self.story}.yaml)"}


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
    """Of a deployment: STATUS, and the conditions about servers and models."""
    if seen["kind"] != "SpeculativeDeployment":
        return None
    if "status" in seen and not _of_its_spec(seen):
        return dict.fromkeys(("STATUS", *SERVING), "any") | {"spec": "edited"}
    spec = "suspended" if seen["spec"]["suspend"] else ""
    return {"STATUS": seen.get("status", {}).get("state", "none yet"), **_conditions(seen, SERVING), "spec": spec}


def verdicts(seen: Manifest) -> Row | None:
    """Of a deployment whose status is of its spec: the conditions about runs and verdicts, and the pools' holds."""
    if seen["kind"] != "SpeculativeDeployment" or not _of_its_spec(seen):
        return None
    found = _conditions(seen, DECIDING)
    return {**found, "holds": _holds(seen)} if any(found.values()) else None


def runs(seen: Manifest) -> Row | None:
    """Of a BenchmarkRun: its outcome and its conditions."""
    if seen["kind"] != "BenchmarkRun":
        return None
    verdict = (seen.get("status") or {}).get("verdict", {})
    said = _conditions(seen, OF_A_RUN)
    return {"OUTCOME": verdict.get("outcome", "") if any(said.values()) else "none yet", **said}


def states(read: Reader, stories: Mapping[str, Iterable[Manifest]]) -> list[State]:
    """Each row once, in the order of its words."""
    found: dict[tuple[str, ...], State] = {}
    said: dict[str, tuple[tuple[str, str], ...]] = {}
    for story, seen in stories.items():
        for one in seen:
            if (row := read(one)) is None:
                continue
            state = found.setdefault(tuple(row.values()), State(row, story))
            if words(one) not in said:
                said[words(one)] = tuple(healths(one).items())
            state.healths.add(said[words(one)])
    return [found[key] for key in sorted(found)]


def healths(seen: Manifest) -> Row:
    """What each tool makes of it."""
    return {"Argo CD": argocd(seen)[0], "Flux": flux(seen), "kstatus": kstatus(seen)}


def table(rows: Sequence[Row]) -> str:
    """Markdown; a column that no row fills is left out."""
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
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


def _conditions(seen: Manifest, kinds: Iterable[str]) -> Row:
    """Type → status and reason; "" where it is absent."""
    said = _conditions_of(seen)
    return {kind: said.get(kind, "") for kind in kinds}
