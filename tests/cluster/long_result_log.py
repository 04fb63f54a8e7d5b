"""The largest result that the API allows, in a pod of six containers: 48 points, each with all of its numbers."""

from tests.cluster.example import SIX_CONTAINERS, small
from tests.support.kubernetes import Namespace
from tests.support.queries import POOL, finished, run_of

LOAD = [{"concurrency": [1, 2, 3, 4, 5, 6, 7, 8]}, {"concurrency": [9, 10, 11, 12]}]
"""A load has eight at most."""
SETS = [{"name": name, "source": f"builtin://{name}", "requests": 24, "maxTokens": 16} for name in ("code", "chat")]


def test_48_points_come_whole_out_of_a_pod_of_six_containers(here: Namespace, hub: str) -> None:
    pools = [{"name": POOL, "replicas": 1, "load": LOAD}]
    here.apply(small("most", hub, engine=SIX_CONTAINERS, pools=pools, benchmark={"datasets": SETS}))
    run = here.wait("a run", run_of(here, "most"), 120)
    decided = here.wait("its verdict", finished(here, run), 1200)
    assert [(entry["round"], entry["try"]) for entry in decided["rounds"]] == [(0, 0), (1, 0)]
    assert [len(entry["points"]) for entry in decided["rounds"]] == [48, 48]
    assert all(point["p50TTFT"] for entry in decided["rounds"] for point in entry["points"])
