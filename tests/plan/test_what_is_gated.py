"""Which edit of what serves is compared first, which goes at once, which moves what serves: as docs/upgrading.md says.

A pool serves `wide`; one field of its spec is edited."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.plan.test_changes import NEXT, by, flagged, rounds, upgraded
from tests.plan.test_nodes import over_two_nodes
from tests.support.campaigns import LATENCY
from tests.support.looked_at import looked_at
from tests.support.messages import Says
from tests.support.searched import Served, begun, searched, searching
from tests.support.stories import promoted
from tests.support.world import World, example

from paceline.cli.live.verdicts import exit_code, verdict_results
from paceline.core import purpose_of

PAGE = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text()
GATED: Mapping[str, Any] = {
    "engine.type": "vLLM",
    "engine.version": "0.5.7",
    "engine.image": "registry.example.com/sglang:other",
    "engine.args": ["--attention-backend=flashinfer", "--mem-fraction-static=0.7"],
    "engine.env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
    "accelerator.tensorParallelSize": 2,
    "draft.revision": "v2",
    "candidates[].tree": {"numSteps": 5, "topK": 4, "numDraftTokens": 6},
}
AT_ONCE: Mapping[str, Any] = {
    "target.source": "hf://Qwen/Other",
    "target.revision": "v2",
    "accelerator.product": "NVIDIA-H100-80GB-HBM3",
    "accelerator.count": 8,
}
MOVED: Mapping[str, Any] = {
    "accelerator.memory": "140Gi",
    "nodeSelector": {"zone": "b"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "engine.podTemplate": {"spec": {"priorityClassName": "high"}},
    "engine.apiKeySecretRef": {"name": "keys", "key": "server"},
    "engine.trustRemoteCode": False,
    "target.servedName": "other",
    "cache.claim.name": "others",
    "pools[].load[].concurrency": [64],
}

DOWNLOADED = ("target.source", "target.revision", "draft.revision", "cache.claim.name")
"""Fields whose edit lets models be downloaded anew."""
ANOTHER = {"name": "deep", "tree": {"numSteps": 5, "topK": 4, "numDraftTokens": 6}}


def edited(spec: dict[str, Any], path: str, value: Any) -> None:
    if path == "engine.type":
        spec["engine"] |= {"type": value, "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0", "args": []}
        spec["candidates"] = [{"name": "chain", "tree": {"numSteps": 3}}]
        return
    at: Any = spec
    *above, last = path.split(".")
    for key in above:
        at = at[key.removesuffix("[]")][0] if key.endswith("[]") else at.setdefault(key, {})
    at[last] = value


def serving(path: str, value: Any) -> World:
    """`wide` is promoted, then the field is edited."""
    world = World()
    promoted(world, "latency")
    world.edit(path, lambda spec: edited(spec, path, value))
    if path in DOWNLOADED:
        world.prefetch_ends()
    assert world.condition("Stalled") == "", world.message("Stalled")
    return world


def row(begins: str) -> str:
    """The fields that the page's table names there."""
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {begins}"))


@pytest.mark.parametrize("path", GATED)
def test_it_is_compared_first(path: str) -> None:
    world = serving(path, GATED[path])
    target = world.memory("latency")["target"]
    assert (target["arm"], world.condition("ChangePending")) == ("wide", "True Measuring")
    assert [arm["name"] for arm in world.runs("latency")[-1]["spec"]["arms"]][-1] == "incumbent"
    assert f"`{path}`" in row("gated")


@pytest.mark.parametrize("path", AT_ONCE)
def test_it_goes_at_once(path: str, says: Says) -> None:
    world = serving(path, AT_ONCE[path])
    target = world.memory("latency")["target"]
    assert (target["arm"], world.condition("ChangePending")) == ("baseline", "")
    says(target["atOnce"])
    assert f"`{path}`" in row("at once") or f"`{path.partition('.')[0]}`" in row("at once")


def test_a_price_changes_nothing_that_serves_or_is_measured() -> None:
    world = World()
    promoted(world, "latency")
    before = world.memory("latency"), world.runs("latency")
    world.edit("a price", lambda spec: edited(spec, "accelerator.pricePerHour", "2.5"))
    assert (world.memory("latency"), world.runs("latency")) == before
    assert world.condition("ChangePending") == ""


@pytest.mark.parametrize("path", MOVED)
def test_it_moves_what_serves(path: str) -> None:
    world = serving(path, MOVED[path])
    target = world.memory("latency")["target"]
    assert (target["arm"], target["evidence"]["run"]) == ("wide", world.runs("latency")[0]["metadata"]["name"])
    assert (world.condition("ChangePending"), world.condition("Reconciling")) == ("", "True RollingOut")
    assert f"`{path}`" in row("moved")


def test_what_was_moved_is_measured_there_and_serves_meanwhile() -> None:
    world = serving("nodeSelector", MOVED["nodeSelector"])
    world.servers_ready()
    assert (world.condition("Measuring"), world.serving("latency")) == ("True Measuring", "wide")
    assert [arm["name"] for arm in world.runs("latency")[-1]["spec"]["arms"]] == ["baseline", "wide"]
    rounds(world, LATENCY)
    assert (world.condition("Promoted"), world.serving("latency")) == ("True AllPromoted", "wide")


def test_a_candidate_that_is_removed_is_not_compared(says: Says) -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another one", lambda spec: spec.update(candidates=[ANOTHER]))
    target = world.memory("latency")["target"]
    assert (target["arm"], world.condition("ChangePending")) == ("baseline", "")
    says(target["atOnce"])


def test_with_another_release_it_is_compared_all_the_same() -> None:
    world = World()
    promoted(world, "latency")

    def change(spec: dict[str, Any]) -> None:
        upgraded(spec)
        spec["candidates"] = [ANOTHER]

    world.edit("another release and another candidate", change)
    assert (world.memory("latency")["target"]["arm"], world.condition("ChangePending")) == ("wide", "True Measuring")


def forgotten(world: World, how: Callable[[Any], Any]) -> None:
    """What serves has no record of what it was rendered from."""
    promoted(world, "latency")
    how(world)
    world.edit("another release", upgraded)


def without_inputs(world: World) -> None:
    """As an older release keeps it."""
    for kept in world.cluster.of("ControllerRevision"):
        kept["data"].pop("served")


def deleted(world: World) -> None:
    for kept in world.cluster.of("ControllerRevision"):
        world.cluster.delete("ControllerRevision", kept["metadata"]["name"])


@pytest.mark.parametrize("how", [without_inputs, deleted])
def test_a_run_that_measured_what_serves_stands_in_for_its_record(how: Callable[[Any], Any]) -> None:
    world = World()
    forgotten(world, how)
    assert world.condition("ChangePending") == "True Measuring"
    assert (
        world.runs("latency")[-1]["spec"]["arms"][-1]["engine"]["image"]
        == "registry.example.com/sglang:0.5.6-tails-mpt"
    )


def test_without_a_run_either_it_goes_at_once(says: Says) -> None:
    world = World()

    def both(world: World) -> None:
        without_inputs(world)
        for run in world.runs("latency"):
            world.cluster.delete("BenchmarkRun", run["metadata"]["name"])

    forgotten(world, both)
    assert world.condition("ChangePending") == ""
    says(re.sub(r"[0-9a-f]{10}", "#", world.memory("latency")["target"]["atOnce"]))


def test_a_round_has_room_for_what_serves() -> None:
    """Else no change of the pool could be compared."""

    def change(spec: dict[str, Any]) -> None:
        more = [{"name": f"n{steps}", "tree": {"numSteps": steps}} for steps in range(1, 11)]
        spec["candidates"] = [*spec["candidates"], *more]

    world = World()
    promoted(world, "latency")
    world.edit("ten candidates", change)
    assert (world.condition("Stalled"), "got 52" in world.message("Stalled")) == ("True InvalidSpec", True)
    world.edit("at once", lambda spec: spec.update(promotion={"changes": "Immediate"}))
    assert world.condition("Stalled") == ""


def test_servers_of_several_nodes_are_not_compared(says: Says) -> None:
    world = World()
    world.apply(over_two_nodes())
    world.prefetch_ends()
    world.servers_ready()
    world.edit("another release", upgraded)
    assert world.condition("ChangePending") == ""
    says(world.memory("latency")["target"]["atOnce"])


def test_a_larger_max_slowdown_judges_the_same_rounds_again() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("a slower flag", lambda spec: edited(spec, "engine.args", GATED["engine.args"]))
    rounds(world, by(0.9))
    assert world.condition("ChangePending") == "True Rejected"
    world.edit("it may cost that", lambda spec: spec["gate"].update(maxSlowdown="20%"))
    world.servers_ready()
    assert (world.condition("ChangePending"), world.serving("latency")) == ("", "wide")
    assert not world.under_way("round")


def test_a_change_that_was_rejected_and_is_taken_back_takes_no_accelerator() -> None:
    world = World()
    promoted(world, "latency")
    before = deepcopy(world._deployed()["spec"])
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    world.edit("taken back", lambda spec: spec.update(before))
    assert (world.condition("ChangePending"), world.condition("Promoted")) == ("", "True AllPromoted")
    assert not world.under_way("round")


def test_once_a_person_has_let_it_through_its_candidate_is_measured() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    (request,) = world.requests("promote-anyway")
    world.annotate(*request)
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    assert [arm["name"] for arm in world.runs("latency")[-1]["spec"]["arms"]] == ["baseline", "wide"]
    rounds(world, by(1.0))
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_a_rejected_change_is_let_through_and_what_it_was_rejected_for_counts_no_more() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    (request,) = world.requests("promote-anyway")
    world.annotate(*request)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")
    rounds(world, by(0.5))
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert (world.serving("latency"), server["spec"]["containers"][0]["image"]) == ("wide", NEXT)


def test_a_pool_that_has_not_served_yet_starts_as_the_changed_spec() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.edit("another release", upgraded)
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert (world.condition("ChangePending"), server["spec"]["containers"][0]["image"]) == ("", NEXT)


def test_by_hand_what_goes_at_once_goes_at_once() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("by hand from now on", lambda spec: spec.update(promotion={"mode": "Manual"}))
    world.edit("another accelerator", lambda spec: edited(spec, "accelerator.count", AT_ONCE["accelerator.count"]))
    assert world.memory("latency")["target"]["arm"] == "baseline"


def test_on_one_full_node_a_change_borrows_the_only_server() -> None:
    world = World(nodes={"gpu-0": 4})
    manifest = example("latency")
    manifest["spec"]["benchmark"] = {"capacityPolicy": "Borrow", "minServing": 0}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while world.condition("Promoted") == "False NotDecided":
        lent(world, LATENCY)
    world.servers_ready()
    assert world.serving("latency") == "wide"
    world.edit("another release", upgraded)
    while world.condition("ChangePending"):
        lent(world, by(1.08))
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert (world.serving("latency"), server["spec"]["containers"][0]["image"]) == ("wide", NEXT)


def lent(world: World, truth: Any) -> None:
    """Half a minute later the pool lends its server, and a round ends."""
    world.wait(1)
    assert world.condition("Ready") == "False NothingServes"
    world.round_ends(truth=truth)


def test_while_it_is_suspended_what_serves_goes_on_and_nothing_is_said_of_the_change() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("suspended", lambda spec: spec.update(suspend=True))
    world.edit("another release", upgraded)
    assert (world.condition("ChangePending"), world.condition("Measuring")) == ("", "False Suspended")
    assert world.serving("latency") == "wide"


class AsBefore(Served):
    """The incumbent is the tree that was found."""

    def __init__(self, found: str) -> None:
        super().__init__("latency", 1)
        self.found = found

    def ratio(self, arm: str, workload: int) -> float:
        return super().ratio(self.found if arm == "incumbent" else arm, workload)

    def length(self, arm: str, dataset: str) -> float:
        return super().length(self.found if arm == "incumbent" else arm, dataset)


def test_a_changed_spec_is_searched_first_and_what_was_found_is_compared_with_what_serves() -> None:
    world = begun(searching("latency"))
    searched(world, {"latency": Served("latency", 1)})
    world.servers_ready()
    found = world.serving("latency")
    world.edit("another flag", flagged)
    assert (world.serving("latency"), world.condition("ChangePending")) == (found, "True Measuring")
    searched(world, {"latency": AsBefore(found)})
    world.servers_ready()
    purposes = [(purpose_of(run["spec"]), run["spec"]["arms"][-1]["name"]) for run in world.runs("latency")[2:]]
    assert [purpose for purpose, _ in purposes] == ["Search", "Gate"]
    assert [last == "incumbent" for _, last in purposes] == [False, True]
    assert (world.serving("latency"), world.condition("ChangePending")) == (found, "")


@pytest.mark.parametrize(("speed", "code"), [(0.5, 10), (1.08, 0)])
def test_paceline_gate_ends_with_the_verdict_on_the_change(speed: float, code: int) -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    assert exit_code(verdict_results(looked_at(world))) == 13
    rounds(world, by(speed))
    world.servers_ready()
    assert exit_code(verdict_results(looked_at(world))) == code


def test_what_a_person_promoted_without_evidence_is_an_incumbent_too() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.annotate("promote-anyway.paceline.dev/latency", "@ticket-1")
    world.servers_ready()
    world.edit("another shape", lambda spec: edited(spec, "candidates[].tree", GATED["candidates[].tree"]))
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Measuring")
    assert world.condition("Promoted") == "True PromotedAnyway"
