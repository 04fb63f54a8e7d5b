"""What preflight finds is told where a person looks, and for as long as it is so."""

import json
from dataclasses import replace

from tests.support.answers import HEAD_FACTS, TARGET_FACTS
from tests.support.campaigns import BASELINE_1
from tests.support.down import at_once
from tests.support.stories import promoted, told
from tests.support.world import World, example

NAME = "qwen3-coder-next"
HEAD = "hf://thoughtworks/Qwen3-Coder-Next-Eagle3"


def fetch_request(world: World) -> dict[str, object]:
    """Of the prefetch under way."""
    (job,) = world.under_way("fetch")
    (fetch,) = job["spec"]["template"]["spec"]["containers"]
    request: dict[str, object] = json.loads(
        next(variable["value"] for variable in fetch["env"] if variable["name"] == "PACELINE_FETCH")
    )
    return request


@told
def test_a_finding_outlives_the_job_that_found_it(world: World) -> None:
    """What the prefetch saw is in status: the Job may go."""
    world.apply(example("latency"))
    world.prefetch_ends(head=replace(HEAD_FACTS, hidden_size=4096))
    (job,) = world.cluster.of("Job")
    world.cluster.delete("Pod", f"{job['metadata']['name']}-pod")
    world.delete("Job", job["metadata"]["name"])
    assert world.condition("Stalled") == "True PreflightFailed"
    assert f"spec.draft.source: {HEAD} " in world.message("Stalled")


@told
def test_another_parallelism_of_the_same_models_is_checked_without_a_job(world: World) -> None:
    """Nothing is fetched anew, and the facts are there all the same."""
    assert TARGET_FACTS.num_attention_heads == 16
    promoted(world, "latency")
    for job in world.cluster.of("Job"):
        world.delete("Job", job["metadata"]["name"])
    world.edit("count: 3", lambda spec: spec["accelerator"].update(count=3))
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True PreflightFailed", "True Serving")
    assert "spec.accelerator.tensorParallelSize: " in world.message("Stalled")


@told
def test_a_candidates_own_head_is_named_where_it_stands(world: World) -> None:
    """Not in spec.draft, which is that of the others."""
    manifest = example()
    manifest["spec"]["candidates"][1]["draft"] = {"algorithm": "EAGLE", "source": HEAD}
    world.apply(manifest)
    world.prefetch_ends()
    assert "spec.candidates[1].draft.algorithm: " in world.message("Stalled")


@told
def test_what_is_worth_knowing_stands_in_notes_and_is_told_once(world: World) -> None:
    """It is no reason to stop; an Event tells it, and status for as long as it is so. The condition stays short."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    assert world.message("CacheReady") == "the models are on the cache volume"

    world.edit("quantise", lambda spec: spec["engine"]["args"].append("--quantization=fp8"))
    note = f"spec.candidates[0].args: --quantization fp8 in spec.engine.args, but {HEAD}"
    assert note in world.status()["notes"][0]
    assert world.message("CacheReady") == "the models are on the cache volume"
    world.wait(10)
    events = [event for shown in world.told for event in shown.events]
    assert len([event for event in events if event.startswith("Normal Preflight: ")]) == 1

    world.edit("or not", lambda spec: spec["engine"]["args"].pop())
    assert "notes" not in world.status()


@told
def test_a_head_that_reads_other_layers_is_measured_and_its_verdict_says_why_it_lost(world: World) -> None:
    """On upstream's release the fork's head, which names no layers, is given others than on the fork."""
    manifest = example("latency")
    manifest["spec"]["engine"] |= {"version": "0.5.23", "image": "lmsysorg/sglang:v0.5.23", "eagle3Targets": []}
    world.apply(manifest)
    world.prefetch_ends(target=replace(TARGET_FACTS, num_hidden_layers=48))
    world.servers_ready()
    note = f"{HEAD} names no layers, so SGLang 0.5.23 takes states before layers 2, 24, 45"
    assert note in " ".join(world.status()["notes"])

    slower = {"baseline": BASELINE_1, "wide": {name: 0.7 * x for name, x in BASELINE_1.items()}}
    while not world.outcome("latency"):
        world.round_ends(truth=slower)
    assert world.condition("Promoted") == "False BaselineFaster"
    assert f"expected: {note}" in world.message("Promoted")


@told
def test_a_refusal_of_the_prefetch_names_its_field(world: World) -> None:
    """The pod knows sources alone."""
    world.apply(example("latency"))
    world.prefetch_fails("no revision v9; name a branch, tag or commit it has", source=HEAD, part="revision")
    assert f"spec.draft.revision: {HEAD}: " in world.message("Stalled")


@told
def test_the_volume_keeps_as_many_revisions_as_asked_and_what_is_served(world: World) -> None:
    """A fetch must not remove under a server what it may load again."""
    manifest = example("latency")
    manifest["spec"]["cache"]["keepRevisions"] = 5
    world.apply(manifest)
    request = fetch_request(world)
    assert (request["keepRevisions"], request["inUse"], request["user"]) == (5, [], f"models/{NAME}")
    world.prefetch_ends()
    served = {model["commit"] for model in world.artifacts()}
    world.edit("another head", lambda spec: spec["draft"].update(source="hf://other/head"))
    assert fetch_request(world)["inUse"] == sorted(served)


def test_facts_that_nobody_believes_stop_nobody() -> None:
    """Two billion layers, or words: nothing is known of such a model then."""
    world = World()
    promoted(world, "latency")
    for job in world.cluster.of("Job"):
        world.delete("Job", job["metadata"]["name"])
    models = world.artifacts()
    models[0]["internal"]["facts"]["num_hidden_layers"] = 2 * 10**9
    models[1]["internal"]["facts"] = "of another release"
    world.edit("another image", at_once("another"))
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"
