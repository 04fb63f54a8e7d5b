"""What is killed in the middle costs time, never a round and never the outcome."""

import time

import pytest
from tests.cluster.example import candidate, small
from tests.support.containers import status_of
from tests.support.kubernetes import Manifest, Namespace, ended
from tests.support.processes import kill, process
from tests.support.queries import RUN, finished, measuring, name_of, run_of

NAME = "crash"


@pytest.mark.timeout(300)
def test_an_arm_whose_whole_container_is_killed_costs_its_own_points(here: Namespace, hub: str) -> None:
    """As by the kernel, for want of memory: the arms before it keep theirs, and the next round is without it. Of a
    baseline nothing is left, so the round is tried again."""
    deep = candidate({"numSteps": 2, "topK": 1, "numDraftTokens": 3}) | {"name": "deep"}
    here.apply(small("arm", hub, candidates=[candidate(), deep]))
    run = here.wait("a run", run_of(here, "arm"), 90)
    for arm in ("baseline", "deep"):
        pod = here.wait(f"{arm} to run", lambda arm=arm: running(here, run, f"arm-{arm}"), 60)
        kill(process(pod, f"arm-{arm}"))
    decided = here.wait("the verdict", finished(here, run), 200)
    assert decided["status"]["verdict"]["outcome"] == "Promote"
    tried, killed, without, *_ = decided["rounds"]
    assert (tried["round"], tried["try"], tried["reason"]) == (0, 0, "ServerCrashed")
    assert "arm-baseline exited with 137" in tried["error"]
    assert (killed["round"], killed["try"], killed["error"]) == (0, 1, "")
    assert [(point["arm"], point["valid"]) for point in killed["points"]] == [("baseline", True), ("deep", False)]
    assert [(one["arm"], one.get("reason", "")) for one in killed["replicates"]] == [
        ("baseline", ""), ("deep", "ServerCrashed"),
    ]  # fmt: skip
    assert "arm-deep exited with 137" in killed["points"][1]["why"]
    assert {one["arm"] for one in without["replicates"]} == {"baseline", "wide"}


def running(here: Namespace, run: Manifest, container: str) -> Manifest | None:
    """The pod of the run's round in which this container runs."""
    pods = here.list("pods", f"{RUN}={name_of(run)}")
    return next((pod for pod in pods if "running" in status_of(pod, container).get("state", {})), None)


@pytest.mark.timeout(300)
def test_a_killed_client_gives_the_gpus_back_and_the_round_is_tried_again(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub))
    run = here.wait("a run", run_of(here, NAME), 90)
    pod = here.wait("the first round to measure", measuring(here, run, 0), 60)
    kill(process(pod, "client"))
    killed = time.monotonic()
    here.wait("its GPUs to be free", lambda: ended(here.get("pod", name_of(pod))), 60)
    assert time.monotonic() - killed < 60

    decided = here.wait("the verdict", finished(here, run), 120)
    status = decided["status"]
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")
    assert [(round["round"], round["try"]) for round in decided["rounds"]] == [(0, 0), (0, 1), (1, 0)]
    assert [bool(round["error"]) for round in decided["rounds"]] == [True, False, False]
    assert "the client" in decided["rounds"][0]["error"]
