"""docs/reports/chaos.md, of all that was found."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.cluster.chaos.machines import ROOT
from tests.cluster.chaos.table import SCENARIOS

WHERE = ROOT / "docs" / "reports" / "chaos.md"
HEAD = """# Chaos

Written by `make chaos` on {date}: a real Kubernetes of two nodes ([docs/cluster.md](../cluster.md)),
the operator by its chart, an emulated engine. Each run is one small deployment (one GPU, one
candidate that is 1.39 times as fast, two rounds of a quarter of a minute; undisturbed it serves its
winner after about 45 s), to which something is done at a moment that the seed chooses.

Converged: the verdict is Promote with the winner that an undisturbed run has, and it is served;
every try of every round is recorded once and stays, no Job of a recorded round is made again (by
uid), no pod but the winner's server holds a GPU, nothing is borrowed, and the operator's log, that
of processes that were killed included, has no traceback. Gone: nothing of it is left, and no GPU is
held. Five: converged, for each of the five that stay. Honest: converged, or Inconclusive with the
baseline served, as a pause that takes several times as long as a measurement may hide the winner.

**{good} of {all} runs converged; {kills} of them had a SIGKILL.** Seconds are of the whole run, with
other work on the machine's two cores. Runs of one deployment go several at a time, and take turns on
the two nodes; what is done to the operator, and what is done to a node, is done beside them, so they
feel it too; what is done to the cluster is done alone.

| scenario | AIPerf | what is done | SIGKILL of | must be | seed | seconds | was | when, and what was seen | commit |
|---|---|---|---|---|---|---|---|---|---|
"""
TAIL = """
AIPerf's scenarios are named in tests/kubernetes/chaos/README.md of ai-dynamo/aiperf at 139b8f35.
Where ours is another thing: C8 and C9 are sidecars of its controller, an event bus and a holder of
results; our round has one container beside its client, and its result is the pod's own termination
message, so C9 takes that pod away. C16 is HTTP between its operator and its controllers; ours reads
the counters of servers by it and nothing of a round. H4 is JobSet, ours LeaderWorkerSet. B3 is a
pause in the measured server's answers, of whichever arm runs then.
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
    )
    return head + "".join(map(_row, rows)) + TAIL


def _row(one: Mapping[str, Any]) -> str:
    scenario = SCENARIOS[one["scenario"]]
    was = scenario.holds if not one["wrong"] else f"**not**: {one['wrong'].splitlines()[-1][:200]}"
    cells = [
        *(scenario.name, scenario.peer, scenario.does, scenario.sigkill, scenario.holds),
        *(str(one["seed"]), str(one["seconds"]), was, "; ".join(one["notes"]), one["commit"]),
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |\n"
