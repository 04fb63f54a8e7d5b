"""The largest results and pods that the API allows: 48 points in a pod of eight containers; 16 arms."""

from tests.cluster.example import SIX_CONTAINERS, small
from tests.support.kubernetes import Namespace
from tests.support.queries import POOL, finished, run_of

LOAD = [{"concurrency": [1, 2, 3, 4, 5, 6, 7, 8]}, {"concurrency": [9, 10, 11, 12]}]
"""A load has eight at most."""
SETS = [{"name": name, "source": f"builtin://{name}", "requests": 24, "maxTokens": 16} for name in ("code", "chat")]


def test_48_points_come_whole_out_of_a_pod_of_eight_containers(here: Namespace, hub: str) -> None:
    pools = [{"name": POOL, "replicas": 1, "load": LOAD}]
    here.apply(small("most", hub, engine=SIX_CONTAINERS, pools=pools, benchmark={"datasets": SETS}))
    run = here.wait("a run", run_of(here, "most"), 120)
    decided = here.wait("its verdict", finished(here, run), 1200)
    assert [(entry["round"], entry["try"]) for entry in decided["rounds"]] == [(0, 0), (1, 0)]
    assert [len(entry["points"]) for entry in decided["rounds"]] == [48, 48]
    assert all(point["p50TTFT"] for entry in decided["rounds"] for point in entry["points"])


def test_16_arms_run_one_after_another_on_the_same_gpus(here: Namespace, hub: str) -> None:
    """As many containers as there are candidates at most, and the baseline."""
    trees = [{"name": f"c{n}", "tree": {"numSteps": 1 + n, "topK": 1, "numDraftTokens": 2 + n}} for n in range(15)]
    pools = [{"name": POOL, "replicas": 1, "load": [{"concurrency": [1]}]}]
    here.apply(small("many", hub, candidates=trees, pools=pools))
    run = here.wait("a run", run_of(here, "many"), 120)
    decided = here.wait("its verdict", finished(here, run), 1200)
    arms = {"baseline", *(tree["name"] for tree in trees)}
    orders = [[one["arm"] for one in entry["replicates"]] for entry in decided["rounds"]]
    assert [entry["error"] for entry in decided["rounds"]] == ["", ""]
    assert [sorted(order) for order in orders] == [sorted(arms)] * 2
    assert orders[0] != orders[1], "the order changes from round to round"
    assert all(len(entry["gpus"]) == 1 for entry in decided["rounds"]), "every arm had the same"
