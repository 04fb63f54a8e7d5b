"""A person changes their mind in the middle of a round."""

import json

from tests.cluster.example import small
from tests.support.kubernetes import Namespace, ended, says
from tests.support.queries import RUN, finished, measuring, pool_of, run_of, served

NAME = "coder"


def test_suspending_stops_a_round_and_resuming_goes_on(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub))
    run = here.wait("a run", run_of(here, NAME), 90)
    stopped = here.wait("the first round to measure", measuring(here, run, 0), 60)

    suspend(here, True)
    label = f"{RUN}={run['metadata']['name']}"
    here.wait("the round to be stopped", lambda: all(map(ended, here.list("pods", label))), 60)
    here.wait("it to be told", lambda: says(here.get("specdep", NAME), "Measuring", "False", "Suspended"), 10)
    deployment = served(here, NAME, "baseline")()
    assert deployment is not None
    assert "verdict" not in pool_of(deployment)
    assert here.list("jobs", label) == []
    assert here.get("bench", run["metadata"]["name"])["rounds"] == []

    suspend(here, False)
    decided = here.wait("the verdict", finished(here, run), 90)
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    assert [(round["round"], round["try"]) for round in decided["rounds"]] == [(0, 0), (1, 0)]
    assert stopped["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in here.list("pods", label)}
    assert len(here.list("bench")) == 1


def suspend(here: Namespace, yes: bool) -> None:
    here.kubectl("patch", "specdep", NAME, "--type", "merge", "--patch", json.dumps({"spec": {"suspend": yes}}))
