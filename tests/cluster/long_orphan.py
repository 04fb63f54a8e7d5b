"""A run that is deleted with --cascade=orphan in a round: the next one of its name is measured to its verdict."""

from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace
from tests.support.queries import finished, run_of, served


def test_what_a_deleted_run_leaves_stops_no_other(here: Namespace, hub: str) -> None:
    here.apply(small("served", hub))
    run = here.wait("a run", run_of(here, "served"), 90)
    name = run["metadata"]["name"]
    here.wait("its first round to be recorded", lambda: here.get("bench", name)["rounds"], 90)
    here.wait(
        "the next round", lambda: [job for job in here.list("jobs") if job["metadata"]["name"].endswith("-1-0")], 60
    )
    here.kubectl("delete", "bench", name, "--cascade=orphan")
    again = here.wait("the run of its name", lambda: another(here, run), 60)
    here.wait("the verdict", finished(here, again), 180)
    here.wait("the winner to be served", served(here, "served", "wide"), 60)
    rounds = here.list("benchmarkrounds")
    assert all(round["metadata"].get("ownerReferences") for round in rounds)


def another(here: Namespace, run: Manifest) -> Manifest | None:
    found = [one for one in here.list("bench") if one["metadata"]["uid"] != run["metadata"]["uid"]]
    return found[0] if found else None
