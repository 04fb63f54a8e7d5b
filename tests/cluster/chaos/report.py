"""docs/reports/chaos.md, of all that was found."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.cluster.chaos.machines import ROOT
from tests.cluster.chaos.table import SCENARIOS
from tests.support.tables import short

REPEATED = 3
"""Columns in which a cell may repeat the one above."""
NONE = "–"
WHERE = ROOT / "docs" / "reports" / "chaos.md"
HEAD = """# Chaos

Written by `make chaos` on {date}, at {commits}: a real Kubernetes of two nodes
([the local cluster](../cluster.md)), the operator from its chart, an emulated engine. Each run is
one small deployment: one GPU, one candidate that is 1.39 times as fast, two rounds of a quarter of a
minute. Undisturbed it serves its winner after about 45 s. The seed chooses the moment of the fault.

* Converged: the verdict is Promote, its winner is the same as undisturbed, and the pool serves it;
  every try is recorded once and stays; no Job of a recorded round is created again; only the
  winner's server holds a GPU; nothing is lent; no operator's log has a traceback.
* Gone: nothing is left, and no GPU is held. Five: five deployments stay, and each converged.
* Honest: converged, or Inconclusive with the baseline served, since a long pause may hide the winner.

**{good} of {all} runs converged; {kills} of them had a SIGKILL.** Seconds are for the whole run, with
other work on two cores. Faults of the cluster are injected alone; faults of the operator or of a node
also affect other runs at that time. An empty cell repeats the cell above it.

| scenario | what is done | SIGKILL of | seed | seconds | was | when, and what was seen |
|---|---|---|---|---|---|---|
"""


def write(found: Sequence[Mapping[str, Any]]) -> None:
    WHERE.write_text(text(found))


def text(found: Sequence[Mapping[str, Any]]) -> str:
    order = list(SCENARIOS)
    rows = sorted(found, key=lambda one: (order.index(one["scenario"]), one["seed"]))
    good = [one for one in rows if not one["wrong"]]
    head = HEAD.format(
        date=datetime.now(UTC).date(),
        good=len(good),
        all=len(rows),
        kills=sum(bool(SCENARIOS[one["scenario"]].sigkill) for one in good),
        commits=", ".join(dict.fromkeys(one["commit"] for one in rows)),
    )
    return head + "".join(f"{line}\n" for line in short(map(_row, rows), REPEATED))


def _row(one: Mapping[str, Any]) -> str:
    scenario = SCENARIOS[one["scenario"]]
    was = scenario.holds if not one["wrong"] else f"**not**: {one['wrong'].splitlines()[-1][:200]}"
    cells = [
        *(scenario.name, scenario.does, scenario.sigkill or NONE),
        *(str(one["seed"]), str(one["seconds"]), was, "; ".join(one["notes"])),
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
