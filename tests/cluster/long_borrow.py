"""Two deployments that borrow on one node take turns. It takes minutes: `make test-all`."""

import pytest
from tests.cluster.test_borrow import all_back, decided, served_by_two, watched
from tests.support.kubernetes import Namespace


@pytest.mark.timeout(600)
def test_two_deployments_that_borrow_on_one_node_both_measure(here: Namespace, hub: str) -> None:
    names = ["first", "second"]
    served_by_two(here, hub, names, crowded=True)
    here.wait("both verdicts", watched(here, names, lambda: decided(here, names)), 300)
    here.wait("all servers", watched(here, names, lambda: all_back(here, names)), 90)
    runs = here.list("bench", "paceline.dev/deployment")
    assert {run["status"]["verdict"]["outcome"] for run in runs} == {"Promote"}
