"""A round's result comes by the log of its client. A real kubelet keeps 12 KiB of termination messages a pod, divided
by its containers: in a pod of six it cut a message to 2 KiB."""

from typing import Any

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace
from tests.support.queries import POOL, finished, run_of

IMAGE = "localhost/paceline-sglang-emulator:dev"
WARM = [{"name": f"warm-{number}", "image": IMAGE, "command": ["true"]} for number in range(4)]
SIX_CONTAINERS: Any = {"podTemplate": {"spec": {"initContainers": WARM}}}


@pytest.mark.timeout(500)
def test_a_result_is_whole_in_a_pod_of_six_containers(here: Namespace, hub: str) -> None:
    sets = [{"name": name, "source": f"builtin://{name}", "requests": 6, "maxTokens": 24} for name in ("code", "chat")]
    pools = [{"name": POOL, "replicas": 1, "load": [{"concurrency": [1, 2, 4]}]}]
    here.apply(small("six", hub, engine=SIX_CONTAINERS, pools=pools, benchmark={"datasets": sets}))
    run = here.wait("a run", run_of(here, "six"), 120)
    decided = here.wait("its verdict", finished(here, run), 250)
    for job in here.list("jobs", "paceline.dev/component=round"):
        spec = job["spec"]["template"]["spec"]
        assert len(spec["containers"]) + len(spec["initContainers"]) == 6
    assert [(entry["round"], entry["try"]) for entry in decided["rounds"]] == [(0, 0), (1, 0)]
    points = [point for entry in decided["rounds"] for point in entry["points"]]
    assert [point["why"] for point in points if not point["valid"]] == []
    assert all(point["p50TTFT"] and point["p99TTFT"] for point in points), "numbers that had no room before"
