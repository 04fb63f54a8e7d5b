"""How requests from outside reach a pool, where the spec asks for it and the cluster knows the kinds."""

from tests.support.messages import Says
from tests.support.stories import told
from tests.support.world import World, example

from paceline.core.manifest import Manifest

ROUTE, POOL = ("HTTPRoute", "qwen3-coder-next-latency"), ("InferencePool", "qwen3-coder-next-latency")


def reached_by(**pool: object) -> Manifest:
    manifest = example()
    manifest["spec"]["gateway"] = {"parentRefs": [{"name": "inference", "namespace": "gateways"}]}
    manifest["spec"]["pools"][0] |= pool
    return manifest


def backend(world: World, name: str) -> str:
    (rule,) = world.cluster.objects["HTTPRoute", f"qwen3-coder-next-{name}"]["spec"]["rules"]
    return str(rule["backendRefs"][0]["kind"])


@told
def test_a_gateway_leads_to_each_pool(world: World) -> None:
    """By a header; one pool has an endpoint picker, which gets an InferencePool. Asked for no more, both go, and so do
    those of a pool that goes."""
    world.apply(reached_by(endpointPickerRef={"name": "picker"}, headerValue="fast"))
    world.prefetch_ends()
    world.servers_ready()
    assert (backend(world, "latency"), backend(world, "throughput")) == ("InferencePool", "Service")
    assert world.cluster.objects[ROUTE]["spec"]["rules"][0]["matches"][0]["headers"] == [
        {"type": "Exact", "name": "x-paceline-pool", "value": "fast"}
    ]

    for name in ("latency", "throughput"):
        (rule,) = world.cluster.objects["HTTPRoute", f"qwen3-coder-next-{name}"]["spec"]["rules"]
        assert rule["timeouts"] == {"request": "0s"}, "an answer may take longer than Envoy's 15 s"

    world.edit("no endpoint picker", lambda spec: spec["pools"][0].pop("endpointPickerRef"))
    assert (POOL in world.cluster.objects, backend(world, "latency")) == (False, "Service")
    world.edit("without throughput", lambda spec: spec["pools"].pop())
    assert [one["metadata"]["name"] for one in world.cluster.of("HTTPRoute")] == [ROUTE[1]]
    world.edit("no gateway", lambda spec: spec.pop("gateway"))
    assert world.cluster.of("HTTPRoute") == []


@told
def test_a_cluster_without_a_gateway_serves_all_the_same(world: World) -> None:
    """Nothing is written and nothing waits; status says what is missing. Once it is installed the routes are made."""
    world.absent = frozenset({"HTTPRoute", "InferencePool"})
    world.apply(reached_by(endpointPickerRef={"name": "picker"}))
    world.prefetch_ends()
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"
    assert {note.partition(":")[0] for note in world.status()["notes"]} >= {"pools[0].endpointPickerRef", "gateway"}
    world.install("HTTPRoute")
    world.install("InferencePool")
    assert {ROUTE, POOL} <= world.cluster.objects.keys()
    assert not any(note.startswith(("pools[0]", "gateway")) for note in world.status().get("notes", ()))


def test_a_route_of_somebody_elses_is_left_as_it_is(says: Says) -> None:
    world = World()
    theirs = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": {"rules": []}}
    world.cluster.apply({**theirs, "metadata": {"name": ROUTE[1]}})
    world.apply(reached_by())
    world.prefetch_ends()
    world.servers_ready()
    assert world.cluster.objects[ROUTE]["spec"] == {"rules": []}
    assert "HTTPRoute qwen3-coder-next-latency" in " ".join(world.status()["notes"])
    says(*world.status()["notes"])
    assert (world.condition("Ready"), backend(world, "throughput")) == ("True Serving", "Service")


def test_a_route_leads_to_no_inference_pool_that_is_not_made() -> None:
    """The cluster lacks the kind, or the one of that name selects somebody else's pods: the Service answers."""
    lacking, foreign = World(), World()
    lacking.absent = frozenset({"InferencePool"})
    theirs = {"selector": {"matchLabels": {"app": "theirs"}}}
    kind = {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool"}
    foreign.cluster.apply({**kind, "metadata": {"name": POOL[1]}, "spec": theirs})
    for world in (lacking, foreign):
        world.apply(reached_by(endpointPickerRef={"name": "picker"}))
        world.prefetch_ends()
        world.servers_ready()
        assert backend(world, "latency") == "Service"
        assert any(note.startswith("pools[0].endpointPickerRef: ") for note in world.status()["notes"])
    assert foreign.cluster.objects[POOL]["spec"] == theirs
    lacking.install("InferencePool")
    assert (POOL in lacking.cluster.objects, backend(lacking, "latency")) == (True, "InferencePool")


def test_a_gateway_moves_no_revision_and_asks_nothing_anew() -> None:
    world = World()
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    before = [world.pool(pool)["serving"]["revision"] for pool in ("latency", "throughput")]
    runs = [one["metadata"]["name"] for one in world.cluster.of("BenchmarkRun")]
    world.edit("a gateway", lambda spec: spec.update(reached_by(endpointPickerRef={"name": "picker"})["spec"]))
    assert [world.pool(pool)["serving"]["revision"] for pool in ("latency", "throughput")] == before
    assert [one["metadata"]["name"] for one in world.cluster.of("BenchmarkRun")] == runs
