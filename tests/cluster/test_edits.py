"""A person edits what is in production: until a verdict speaks against it, the promoted server goes on as if nothing
had happened. One deployment through all edits, each of which is put back."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import candidate, pool, small
from tests.support.kubernetes import Manifest, Namespace, condition, labels_of, says
from tests.support.queries import RUN, pool_of, served

NAME = "coder"
ROUNDS = "paceline.dev/component=round"
GATE = {"confidence": "80%"}
LONGER = {"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 32}
LENIENT = {**GATE, "minImprovement": "3%"}
DEEP = {"name": "deep", "tree": {"numSteps": 7, "topK": 1, "numDraftTokens": 8}}  # 0.93x
BOTH = [candidate(), DEEP]
SEVEN = [candidate({"numSteps": 3, "topK": 4, "numDraftTokens": 7})]


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("edits") as fresh:
        fresh.apply(small(NAME, hub))
        fresh.wait("the winner to be served", served(fresh, NAME, "wide"), 150)
        yield fresh


@pytest.mark.parametrize(
    ("replicas", "gate"),
    [(1, {"minImprovement": "4%"}), (2, {"maxRegression": "5%"})],
    ids=["one server", "two servers"],
)
def test_a_looser_gate_is_judged_on_the_rounds_there_are(
    here: Namespace, hub: str, replicas: int, gate: dict[str, str]
) -> None:
    pools = [pool(replicas=replicas)]
    here.apply(small(NAME, hub, pools=pools))
    here.wait("its servers", lambda: pool_of(here.get("specdep", NAME)).get("readyReplicas") == replicas, 60)
    before, jobs, known = uninterrupted(here, replicas), names(here, "jobs", ROUNDS), names(here, "bench")
    here.apply(small(NAME, hub, pools=pools, gate={**GATE, **gate}))
    run = here.wait("a run that judges again", lambda: judged_again(here, known), 30)
    assert run["status"]["verdict"]["outcome"] == "Promote"
    assert "no further round was measured" in run["status"]["verdict"]["message"]
    assert names(here, "jobs", ROUNDS) <= jobs
    here.wait("it to be what production goes by", lambda: evidence(here) == run["metadata"]["name"], 20)
    assert uninterrupted(here, replicas) == before
    restore(here, hub)


def test_a_candidate_comes_is_rejected_and_goes(here: Namespace, hub: str) -> None:
    """It is measured with the baseline alone. That it goes costs nothing, not even a run: what both were asked says
    enough of the one that stays. (By another gate than at first, or the first answer would hold again.)"""
    before, known = uninterrupted(here), names(here, "bench")
    here.apply(small(NAME, hub, gate=LENIENT, candidates=BOTH))
    found = here.wait("a round beside the servers", lambda: measuring_beside(here), 60)
    assert "candidate deep was added" in why(found)
    run = here.wait("its verdict", lambda: judged_again(here, known), 120)
    assert (run["status"]["verdict"]["winner"], verdicts(run)) == ("wide", {"wide": "promotable", "deep": "rejected"})
    own = [one for one in run["rounds"] if "run" not in one]
    assert {point["arm"] for one in own for point in one["points"]} == {"baseline", "deep"}
    here.wait("it to be what production goes by", lambda: evidence(here) == run["metadata"]["name"], 20)

    runs, jobs = names(here, "bench"), names(here, "jobs", ROUNDS)
    here.apply(small(NAME, hub, gate=LENIENT))
    decided = here.wait("the same answer", lambda: decided_for(here), 20)
    assert pool_of(decided)["verdict"]["evidence"]["run"] == run["metadata"]["name"]
    assert says(decided, "Promoted", "True", "AllPromoted")
    assert (names(here, "bench"), names(here, "jobs", ROUNDS) <= jobs) == (runs, True)
    assert uninterrupted(here) == before
    restore(here, hub)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"benchmark": {"datasets": [LONGER]}}, "maxTokens changed: 24 to 32"),
        ({"candidates": SEVEN}, "tree.numDraftTokens changed: 8 to 7"),
        ({"candidates": SEVEN, "promotion": {"mode": "Manual"}}, "tree.numDraftTokens changed: 8 to 7"),
    ],
    ids=["dataset", "shape", "Manual"],
)
def test_another_question_is_measured_beside_what_serves(
    here: Namespace, hub: str, edit: dict[str, Any], said: str
) -> None:
    """And told by what changed. Put back, the old answer holds, and no round is measured for that."""
    before = uninterrupted(here)
    here.apply(small(NAME, hub, **edit))
    found = here.wait("a round beside the servers", lambda: measuring_beside(here), 60)
    assert said in why(found)
    assert (uninterrupted(here), pool_of(found)["serving"]["arm"]) == (before, "wide")
    restore(here, hub)
    assert uninterrupted(here) == before


def restore(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub))
    here.wait("the old answer", lambda: says(here.get("specdep", NAME), "Promoted", "True", "AllPromoted"), 30)
    here.wait("one server", lambda: len(standing(here)) == 1, 30)
    here.wait("rounds to be over", lambda: not any(map(_goes_on, here.list("pods", ROUNDS))), 60)


def _goes_on(pod: Manifest) -> bool:
    return pod["status"].get("phase") in ("Pending", "Running")


def measuring_beside(here: Namespace) -> Manifest | None:
    """The deployment, once a round of the new question has a pod while what was promoted serves."""
    found = here.get("specdep", NAME)
    going_on = [pod for pod in here.list("pods", ROUNDS) if RUN in labels_of(pod)]
    beside = says(found, "Promoted", "True", "StillPromoted") and says(found, "Measuring", "True", "Measuring")
    return found if beside and going_on else None


def decided_for(here: Namespace) -> Manifest | None:
    """The deployment, once what it asks by now has its answer."""
    found = here.get("specdep", NAME)
    seen = found["status"]["observedGeneration"] == found["metadata"]["generation"]
    return found if seen and says(found, "Decided", "True", "AllDecided") else None


def judged_again(here: Namespace, known: set[str]) -> Manifest | None:
    """The run that has taken rounds over and has its verdict, none of those known before."""
    runs = [
        run for run in here.list("bench") if "roundsOf" in run["spec"]["gate"] and run["metadata"]["name"] not in known
    ]
    return next((run for run in runs if "verdict" in run.get("status", {})), None)


def why(deployment: Manifest) -> str:
    """What it says of what is not decided."""
    found = condition(deployment, "Decided")
    return str(found["message"]) if found else ""


def verdicts(run: Manifest) -> dict[str, str]:
    return {one["arm"]: one["outcome"] for one in run["status"]["armVerdicts"]}


def evidence(here: Namespace) -> str:
    target = pool_of(here.get("specdep", NAME)).get("internal", {}).get("target", {})
    return str(target.get("evidence", {}).get("run", ""))


def names(here: Namespace, kind: str, labels: str = "") -> set[str]:
    return {found["metadata"]["name"] for found in here.list(kind, labels)}


def standing(here: Namespace) -> list[Manifest]:
    """The servers' pods but for those on their way out."""
    pods = here.list("pods", f"paceline.dev/deployment={NAME},paceline.dev/component=server")
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def uninterrupted(here: Namespace, replicas: int = 1) -> set[tuple[str, str]]:
    """The pods that serve, and since when each has been ready: all stay if none was gone for a moment."""
    pods = standing(here)
    ready = [next(one for one in pod["status"]["conditions"] if one["type"] == "Ready") for pod in pods]
    assert [one["status"] for one in ready] == ["True"] * replicas
    return {(pod["metadata"]["uid"], said["lastTransitionTime"]) for pod, said in zip(pods, ready, strict=True)}
