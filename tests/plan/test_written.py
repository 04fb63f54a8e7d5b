"""What a status declares, somebody writes: a field of the reference that stays empty promises what is not there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.plan.test_abort import KEY as ABORT
from tests.plan.test_borrow import full, rival
from tests.plan.test_changes import by, rounds, upgraded
from tests.plan.test_earned import longer
from tests.plan.test_guard import SLOW_AT_32
from tests.plan.test_outputs import compared
from tests.plan.test_own_args import OWN
from tests.plan.test_promote_anyway import KEY as ANYWAY
from tests.plan.test_promote_anyway import rejected
from tests.plan.test_prompts import with_prompts
from tests.plan.test_requests import RETRY, held, in_error
from tests.plan.test_rollback import KEY as ROLLBACK
from tests.plan.test_rollback import PROMOTE
from tests.plan.test_sweep import CROSSING
from tests.support import signing
from tests.support.answers import died, not_compared, otherwise, taking, using
from tests.support.campaigns import LATENCY
from tests.support.guard import NARROW_IS_SLOWER, dropped, guarded, hung, promoted_anyway
from tests.support.imported import allow, apply
from tests.support.searched import Served, searched, searching
from tests.support.world import World, example

from paceline import api
from paceline.plan.simulation.reconciler import OURS

STATUS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("status")
    for crd in api.crds()
    if crd["spec"]["names"]["kind"] in OURS
}


@dataclass
class Seen(World):
    """A world that remembers every field that a status ever had."""

    fields: set[str] = field(default_factory=set)

    def settle(self, *args: Any, **kwargs: Any) -> None:
        super().settle(*args, **kwargs)
        for (kind, _), found in self.cluster.objects.items():
            if kind in OURS:
                self.fields |= set(present(STATUS[kind], found.get("status") or {}, kind))


def present(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """Fields that the schema names and the value has; what is a map of the user's own words has none."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from present(schema["items"], one, path)
    elif isinstance(value, Mapping):
        for name in value.keys() & schema.get("properties", {}).keys():
            yield f"{path}.{name}"
            yield from present(schema["properties"][name], value[name], f"{path}.{name}")


def declared(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, inner in schema.get("items", schema).get("properties", {}).items():
        yield f"{path}.{name}"
        yield from declared(inner, f"{path}.{name}")


def test_every_field_of_a_status_is_written_by_somebody() -> None:
    written = set().union(*(story().fields for story in STORIES))
    assert {path for kind, schema in STATUS.items() for path in declared(schema, kind)} - written == set()


def serving(manifest: dict[str, Any]) -> Seen:
    world = Seen()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


def promoted_by_hand() -> Seen:
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world = serving(manifest)
    for _ in range(3):
        world.round_ends()
    world.annotate(*world.requests("promote")[0])
    world.servers_ready()
    world.annotate("demote.paceline.dev/latency", "now")
    return world


def of_prompts() -> Seen:
    return serving(with_prompts("latency"))


def of_two_loads() -> Seen:
    manifest = example("latency")
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [1, 32]}]
    world = serving(manifest)
    for _ in range(3):
        world.round_ends(truth=CROSSING)
    return world


def of_own_arguments() -> Seen:
    """And of an image, with outputs that are compared: in the first round they could not be, later they part."""
    manifest = compared("latency")
    manifest["spec"]["candidates"][0] |= {
        "args": [OWN],
        "engine": {"image": "docker.io/ours/fork:2", "version": "0.5.6"},
    }
    world = serving(manifest)
    world.round_ends(wide=not_compared)
    for _ in range(2):
        world.round_ends(wide=otherwise)
    return world


def of_energy() -> Seen:
    world = serving(example("latency"))
    for _ in range(3):
        world.round_ends(baseline=using(1.0), wide=using(1.3))
    return world


def of_time() -> Seen:
    world = serving(example("latency"))
    world.round_ends(baseline=taking(loads=30.0))
    return world


def of_two_servers() -> Seen:
    """Rolled out one after another; and the image is found to be of another version."""
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = 2
    world = Seen(nodes={"gpu-0": 8, "gpu-1": 8}, image="registry.example.com/sglang@sha256:" + "0" * 64)
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    world.server_ready("latency", 0)
    world.servers_ready()
    world.runs("latency")[0]["status"]["engineVersion"] = "0.9.9"
    world.wait(1)
    return world


def against_the_verdict() -> Seen:
    """Promoted, undone, and what is asked next is ended."""
    world = Seen()
    rejected(world)
    world.annotate(ANYWAY, "@monday")
    world.servers_ready()
    world.annotate(ROLLBACK, "@tuesday")
    world.edit("longer answers", longer)
    world.annotate(ABORT, "wednesday")
    return world


def too_late() -> Seen:
    world = Seen()
    held(world)
    world.annotate(RETRY, "once more")
    world.wait(31)
    return world


def without_room() -> Seen:
    """One server more waits for it, and is withdrawn."""
    world = serving(example("latency"))
    for _ in range(2):
        world.round_ends()
    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 0}
    world.round_ends()
    world.until_wake()
    return world


def refused() -> Seen:
    world = Seen()
    world.faults.refuses["round"] = "exceeded quota"
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.wait(1)
    return world


def again() -> Seen:
    world = Seen()
    in_error(world)
    world.annotate(RETRY, "once more")
    return world


def lent_in_vain() -> Seen:
    world = Seen()
    full(world)
    rival(world)
    for _ in range(2):
        world.wait(11)
    return world


def degraded() -> Seen:
    """Told, then served by the baseline instead."""
    world = Seen(truths={"latency": LATENCY, "throughput": SLOW_AT_32})
    guarded("Notify", "latency", "throughput", world=world)
    dropped(world)
    world.edit("Fallback", lambda spec: spec["guard"].update(action="Fallback"))
    return world


def taken_down_twice() -> Seen:
    """Two candidates, one after the other."""
    world = Seen(truths=NARROW_IS_SLOWER)
    promoted_anyway(world)
    hung(world)
    return world


def dropped_after_every_request() -> Seen:
    """The pool is renamed, which takes it out of the spec."""
    world = against_the_verdict()
    world.annotate(PROMOTE, f"{world.memory('latency')['target']['revision']}@thursday")
    world.annotate(RETRY, "friday")
    world.edit("another name", lambda spec: spec["pools"][0].update(name="other"))
    return world


def on_what_was_brought_along() -> Seen:
    world = Seen()
    allow(world)
    world.settings = replace(world.settings, signers={"desk": signing.pem(signing.key())})
    apply(world, signing.signed_file(signing.key()))
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    return world


def searched_with_a_crash() -> Seen:
    """The servers of every chain of three tokens crash."""
    world = Seen()
    world.apply(searching("latency"))
    world.prefetch_ends()
    world.servers_ready()
    searched(world, {"latency": Served("latency", 1)}, **{"tree-3-1-4": died})
    return world


def of_a_changed_spec() -> Seen:
    world = serving(example("latency"))
    rounds(world, LATENCY)
    world.servers_ready()
    world.edit("another release", upgraded)
    rounds(world, by(1.0))
    world.servers_ready()
    return world


def of_other_accelerators() -> Seen:
    world = serving(example("latency"))
    world.edit("another product", lambda spec: spec["accelerator"].update(product="NVIDIA-H100"))
    return world


STORIES = (
    of_other_accelerators,
    of_a_changed_spec,
    searched_with_a_crash,
    degraded,
    taken_down_twice,
    dropped_after_every_request,
    promoted_by_hand,
    of_prompts,
    of_two_loads,
    of_own_arguments,
    of_energy,
    of_time,
    of_two_servers,
    against_the_verdict,
    too_late,
    without_room,
    refused,
    again,
    lent_in_vain,
    on_what_was_brought_along,
)
