"""An operator that is killed again and again costs time, never a round and never the outcome."""

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace
from tests.support.processes import Operator
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
