"""What ran is recorded, as far as the cluster tells it."""

from typing import Any

import pytest
from tests.plan.cluster import Object
from tests.plan.test_runs import run_of
from tests.plan.world import World, example

from paceline.plan.run.neighbours import neighbours

IMAGE = "docker.io/lmsysorg/sglang@sha256:0123"


class Told(World):
    """Its kubelet names the image that it ran."""

    def _end(self, job: Object, container: str, code: int, message: str) -> None:
        super()._end(job, container, code, message)
        (pod,) = self.cluster.owned("Pod", job)
        pod["status"]["containerStatuses"].append({"name": "server", "imageID": IMAGE, "state": {}})


def test_the_image_that_ran_is_recorded_by_its_digest() -> None:
    world = Told()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.round_ends()
    (record,) = run_of(world)["status"]["rounds"]
    assert record["image"] == IMAGE


GPU = "nvidia.com/gpu"
BEGAN, BEFORE, MEANWHILE = "2026-11-21T08:00:00Z", "2026-11-21T07:59:00Z", "2026-11-21T08:10:00Z"


def pod(name: str, gpus: int = 0, ended: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": 0, "finishedAt": ended}} if ended else {"running": {}}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid of {name}"},
        "spec": {"containers": [{"resources": {"limits": {GPU: str(gpus)} if gpus else {"cpu": "1"}}}, {}]},
        "status": {
            "startTime": BEGAN,
            "phase": "Succeeded" if ended else "Running",
            "containerStatuses": [{"state": state}],
        },
    }


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (pod("train", 4), ("team/train (4)",)),
        (pod("ended-meanwhile", 2, MEANWHILE), ("team/ended-meanwhile (2)",)),
        (pod("ended-before", 2, BEFORE), ()),
        (pod("no-accelerator"), ()),
    ],
)
def test_who_else_had_accelerators_on_the_node(other: dict[str, Any], told: tuple[str, ...]) -> None:
    mine = pod("round", 4)
    assert neighbours(mine, [mine, other], GPU) == told
