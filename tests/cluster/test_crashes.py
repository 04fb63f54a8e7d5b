"""What is killed in the middle costs time, never a round and never the outcome."""

import time

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace, ended
from tests.support.processes import Operator, kill, process
from tests.support.queries import (
    QUOTA,
    complete,
    finished,
    jobs_of,
    measuring,
    name_of,
    pods_of,
    run_of,
    served,
    uid_of,
)

NAME = "crash"


@pytest.mark.timeout(420)
def test_an_operator_killed_anywhere_repeats_no_round(here: Namespace, hub: str, operator: Operator) -> None:
    """After a run exists and before its Job; inside a point; after a Job is complete and before its result is read."""
    here.apply(QUOTA)
    here.wait("the quota to be counted", lambda: here.get("resourcequota", "one-job").get("status", {}).get("hard"), 20)
    here.apply(small(NAME, hub))
    run = here.wait("a run", run_of(here, NAME), 90)
    here.wait(
        "its first round to be meant", lambda: "progress" in here.get("bench", name_of(run)).get("status", {}), 20
    )
    assert jobs_of(here, run) == []
    operator.kill()
    here.kubectl("delete", "resourcequota", "one-job")

    here.wait("the first round to measure", measuring(here, run, 0), 90)
    (first,) = jobs_of(here, run)
    operator.kill()

    here.wait("the second round to measure", measuring(here, run, 1), 120)
    operator.freeze()
    first_again, second = jobs_of(here, run)
    here.wait("the second round's Job", lambda: complete(here.get("job", name_of(second))), 60)
    assert len(here.get("bench", name_of(run))["rounds"]) == 1
    operator.kill()

    decided = here.wait("the verdict", finished(here, run), 120)
    status = decided["status"]
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")
    assert [(round["round"], round["try"], round["error"]) for round in decided["rounds"]] == [(0, 0, ""), (1, 0, "")]
    assert uid_of(first_again) == uid_of(first)
    assert [uid_of(job) for job in jobs_of(here, run)] == [uid_of(first), uid_of(second)]
    assert len(pods_of(here, run)) == 2
    assert [name_of(one) for one in here.list("bench")] == [name_of(run)]


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
