"""What is killed in the middle costs time, never a round and never the outcome."""

import re
import time

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace, ended
from tests.support.processes import kill, process
from tests.support.queries import (
    finished,
    measuring,
    name_of,
    run_of,
)

NAME = "crash"


@pytest.mark.timeout(300)
def test_an_arm_whose_whole_container_is_killed_costs_one_try(here: Namespace, hub: str) -> None:
    """As by the kernel, for want of memory."""
    here.apply(small("arm", hub))
    run = here.wait("a run", run_of(here, "arm"), 90)
    pod = here.wait("the first round to measure", measuring(here, run, 0), 60)
    kill(process(pod, "server"))
    decided = here.wait("the verdict", finished(here, run), 150)
    assert (decided["status"]["verdict"]["outcome"], decided["status"]["verdict"]["winner"]) == ("Promote", "wide")
    assert [(round["round"], round["try"], round.get("reason", "")) for round in decided["rounds"]] == [
        (0, 0, "ServerCrashed"), (0, 1, ""), (1, 0, ""),
    ]  # fmt: skip
    assert re.search(r"arm-\w+ exited with 137", decided["rounds"][0]["error"])


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
