"""What takes servers down, and where stories of it begin."""

from collections.abc import Callable
from typing import Any

from tests.support.stories import measuring
from tests.support.world import World, example

NAME = "qwen3-coder-next"
RETRY = "retry.paceline.dev/latency"
OLD = example("latency")["spec"]["engine"]["image"]
NOT_FOUND = 'Back-off pulling image "lmsysorg/sglang:v0.5.99": not found'


def now(spec: dict[str, Any]) -> None:
    """What is edited serves before it is measured."""
    spec["promotion"] = {**spec.get("promotion", {}), "changes": "Immediate"}


def at_once(image: str) -> Callable[[dict[str, Any]], None]:
    """An edit of the image that is not measured before it serves."""

    def edit(spec: dict[str, Any]) -> None:
        spec["engine"]["image"] = image
        now(spec)

    return edit


another_image = at_once("lmsysorg/sglang:v0.5.99")
the_old_image = at_once(OLD)


def a_small_limit(spec: dict[str, Any]) -> None:
    limits = {"containers": [{"name": "server", "resources": {"limits": {"memory": "20Mi"}}}]}
    spec["engine"]["podTemplate"] = {"spec": limits}
    now(spec)


def another_dataset(spec: dict[str, Any]) -> None:
    spec["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code"}]}


def a_longer_deadline(spec: dict[str, Any]) -> None:
    spec["promotion"] = {"progressDeadline": "3h"}


def arm(world: World) -> str:
    """Of the servers that there are to be."""
    return str(world.memory("latency")["target"]["arm"])


def hold(world: World) -> Any:
    """Why something may not be served, the latest first."""
    return ", ".join(hold["reason"] for hold in world.pool("latency").get("holds", ())) or None


def rolling_out(replicas: int, nodes: int = 2) -> World:
    """A candidate that has won is to serve in place with so many replicas, each of which has a node; none is ready."""
    world = World(nodes={f"gpu-{number}": 4 * replicas for number in range(nodes)})
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["promotion"] = {"surge": "Never"}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    assert arm(world) == "wide"
    return world


def won(world: World, pool: str) -> None:
    """A candidate is to serve and has not come up yet."""
    measuring(world, pool)
    for _ in range(3):
        world.round_ends()
