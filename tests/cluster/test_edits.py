"""A person edits what is in production: until a verdict speaks against it, the promoted server goes on as if nothing
had happened. One deployment through all edits, each of which is put back."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import pool, small
from tests.cluster.kubernetes import Manifest, Namespace, condition, labels_of, says
from tests.cluster.looks import RUN, pool_of, served

NAME = "coder"
ROUNDS = "paceline.dev/component=round"
GATE = {"confidence": "0.8"}
LONGER = {"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 32}
NARROW = {"name": "narrow", "tree": {"numSteps": 2, "topK": 2, "numDraftTokens": 4}}
BOTH = {**pool(), "candidates": [*pool()["candidates"], NARROW]}
SEVEN = pool(tree={"numSteps": 3, "topK": 4, "numDraftTokens": 7})


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("edits") as fresh:
        fresh.apply(small(NAME, hub))
        fresh.wait("the winner to be served", served(fresh, NAME, "wide"), 150)
        yield fresh


def test_a_looser_gate_is_judged_on_the_rounds_there_are(here: Namespace, hub: str) -> None:
    before, jobs = uninterrupted(here), names(here, "jobs")
    here.apply(small(NAME, hub, gate={**GATE, "minimumImprovement": "0.04"}))
    run = here.wait("a run that judges again", lambda: judged_again(here), 30)
    assert run["status"]["verdict"]["outcome"] == "Promote"
    assert "nothing was measured for it" in run["status"]["verdict"]["message"]
    assert names(here, "jobs") <= jobs
    here.wait("it to be what production goes by", lambda: evidence(here) == run["metadata"]["name"], 20)
    assert uninterrupted(here) == before
    restore(here, hub)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"benchmark": {"datasets": [LONGER], "decideAfterRounds": [2]}}, "maxTokens changed: 24 to 32"),
        ({"pools": [BOTH]}, "candidate narrow was added"),
        ({"pools": [SEVEN]}, "tree.numDraftTokens changed: 8 to 7"),
        ({"pools": [SEVEN], "promotion": {"mode": "Manual"}}, "tree.numDraftTokens changed: 8 to 7"),
    ],
    ids=["dataset", "candidate", "shape", "Manual"],
)
def test_another_question_is_measured_beside_what_serves(
    here: Namespace, hub: str, edit: dict[str, Any], said: str
) -> None:
    """And told by what changed. Put back, the old answer holds, and no round is measured for that."""
    before = uninterrupted(here)
    here.apply(small(NAME, hub, **edit))
    found = here.wait("a round beside the servers", lambda: measuring_beside(here), 60)
    decided = condition(found, "Decided")
    assert decided is not None
    assert said in decided["message"]
    assert (uninterrupted(here), pool_of(found)["serving"]["arm"]) == (before, "wide")
    restore(here, hub)
    assert uninterrupted(here) == before


def restore(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub))
    here.wait("the old answer", lambda: says(here.get("specdep", NAME), "Promoted", "True", "AllPromoted"), 30)
    here.wait("rounds to be over", lambda: not any(map(_goes_on, here.list("pods", ROUNDS))), 60)


def _goes_on(pod: Manifest) -> bool:
    return pod["status"].get("phase") in ("Pending", "Running")


def measuring_beside(here: Namespace) -> Manifest | None:
    """The deployment, once a round of the new question has a pod while what was promoted serves."""
    found = here.get("specdep", NAME)
    going_on = [pod for pod in here.list("pods", "paceline.dev/component=round") if RUN in labels_of(pod)]
    beside = says(found, "Promoted", "True", "StillPromoted") and says(found, "Measuring", "True", "Measuring")
    return found if beside and going_on else None


def judged_again(here: Namespace) -> Manifest | None:
    runs = [run for run in here.list("bench") if "roundsOf" in run["spec"]]
    return next((run for run in runs if "verdict" in run.get("status", {})), None)


def evidence(here: Namespace) -> str:
    return str(pool_of(here.get("specdep", NAME)).get("target", {}).get("evidence", ""))


def names(here: Namespace, kind: str) -> set[str]:
    return {found["metadata"]["name"] for found in here.list(kind, "paceline.dev/component=round")}


def uninterrupted(here: Namespace) -> tuple[str, str]:
    """The pod that serves, and since when it has been ready: both stay if it was never gone for a moment."""
    pods = here.list("pods", f"paceline.dev/deployment={NAME},paceline.dev/component=server")
    (pod,) = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    (ready,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
    assert ready["status"] == "True"
    return pod["metadata"]["uid"], ready["lastTransitionTime"]
