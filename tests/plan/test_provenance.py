"""What ran is recorded, as far as the cluster tells it."""

from tests.plan.cluster import Object
from tests.plan.test_runs import run_of
from tests.plan.world import World, example

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
