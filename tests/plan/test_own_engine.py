"""A candidate with an engine of its own: its verdict says in what it differs, and the winner is served on its image."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.campaigns import LATENCY
from tests.support.example import run as example_run
from tests.support.messages import Says
from tests.support.world import World, example

from paceline.api.round import ReplicateRecord, Round
from paceline.cli.live.deployment import observe_deployment
from paceline.core import RunSpec
from paceline.evidence import Replicate
from paceline.evidence.arguments import Difference
from paceline.plan.deployment.degraded import watched_pools
from paceline.plan.deployment.runs import Run
from paceline.plan.run.imported import _other_versions
from paceline.report.build import build_report

NEXT = {"image": "lmsysorg/sglang:v0.5.24"}
FEWER = Difference("chunked_prefill_size", "8192", "4096")


def resolved(found: Replicate) -> Replicate:
    """Another release resolves 21 arguments otherwise."""
    return replace(found, version="0.5.24", differs=(Difference("version", "0.5.24", "0.5.6"), FEWER), differing=21)


def measured(**own: Any) -> World:
    """The latency pool, its candidate on another image, to its verdict."""
    manifest = example("latency")
    own = {"engine": NEXT, **own}
    candidate = manifest["spec"]["candidates"][0] | own
    manifest["spec"]["candidates"][0] = {key: value for key, value in candidate.items() if value is not None}
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while not world.outcome("latency"):
        job = world.under_way("round")[0]
        world.round_ends(wide=resolved)
    assert image_of(job, "arm-wide") == NEXT["image"] != image_of(job, "arm-baseline")
    return world


def image_of(job: dict[str, Any], container: str) -> str:
    containers = job["spec"]["template"]["spec"]["initContainers"]
    return next((str(one["image"]) for one in containers if one["name"] == container), "")


def test_verdict_status_and_report_say_in_what_it_differs(says: Says) -> None:
    run = measured().runs("latency")[-1]
    assert run["status"]["verdict"]["outcome"] == "Promote"
    says(run["status"]["verdict"]["message"])
    says(*run["status"]["armVerdicts"][0]["differs"])
    view = build_report([run]).runs[0]
    says(view.found)
    assert view.configuration.unequal == ()
    assert any(difference.name == "engine.image" for difference in view.configuration.asked)


def test_each_arm_runs_its_image_in_the_round_and_the_winner_its_own_when_it_serves() -> None:
    world = measured()
    world.servers_ready()
    assert world.serving("latency") == "wide"
    assert {pod["spec"]["containers"][0]["image"] for pod in world._servers()} == {NEXT["image"]}


def test_the_image_of_an_arm_that_dropped_out_is_remembered() -> None:
    """The last round is without the winner: its image is not the baseline's."""
    spec = {"engine": {"image": "a"}, "arms": [{"name": "baseline"}, {"name": "wide", "engine": {"image": "b"}}]}
    images = {"imageDigests": {"server": "a@sha256:aa", "arm-wide": "b@sha256:bb"}}
    run = Run(manifest={"metadata": {"name": "r"}, "spec": spec, "status": {"internal": images}})
    assert (run.image_of("wide"), run.image_of("baseline")) == ("b@sha256:bb", "a@sha256:aa")
    unknown = Run(
        manifest={"metadata": {"name": "r"}, "spec": spec, "status": {"internal": {"imageDigests": {"server": "a"}}}}
    )
    assert unknown.image_of("wide") == ""


def test_a_candidate_may_be_nothing_but_another_release() -> None:
    """It has no draft, so no acceptance is asked of it."""
    world = measured(tree=None, draft=None)
    assert world.outcome("latency") == "Promote"


def test_another_image_of_a_candidate_is_another_question(says: Says) -> None:
    world = measured()
    world.servers_ready()
    world.edit("another image", lambda spec: spec["candidates"][0]["engine"].update(image="lmsysorg/sglang:v0.5.25"))
    says(world.message("Promoted"), world.message("ChangePending"))
    assert world.serving("latency") == "wide"


def test_its_servers_are_watched_and_read_as_its_own_engine_has_them() -> None:
    world = measured()
    world.servers_ready()
    (deployed,) = world.cluster.of("SpeculativeDeployment")
    seen = observe_deployment(deployed, (), {}, world.cluster.now)
    assert (seen.engine_of("wide"), seen.engine_of("baseline")) == (("SGLang", "0.5.24"), ("SGLang", "0.5.6"))
    snapshot = world.deployment_snapshot()
    watched = watched_pools(snapshot, snapshot.status.pools)["latency"]
    assert (watched.engine, watched.version) == ("SGLang", "0.5.24")


def test_an_image_that_cannot_be_pulled_costs_its_own_arm_and_not_the_others(says: Says) -> None:
    """Five minutes of a round, twice; then the others go on without it."""
    manifest = example("latency")
    manifest["spec"]["candidates"].append({"name": "next", "engine": NEXT})
    world = World(truths={"latency": {**LATENCY, "next": LATENCY["baseline"]}})
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while not world.outcome("latency"):
        if image_of(world.under_way("round")[0], "arm-next"):
            world.image_is_missing("next")
        else:
            world.round_ends()
    run = world.runs("latency")[-1]
    assert run["status"]["verdict"]["winner"] == "wide"
    tried = [one for one in run["rounds"] for two in one["replicates"] if two["arm"] == "next"]
    assert len(tried) == 2
    says(run["status"]["verdict"]["message"], *tried[0]["notes"])


@pytest.mark.parametrize(("version", "refused"), [("0.5.24+emulated", False), ("0.5.22", True), ("", True)])
def test_rounds_of_another_release_than_the_arms_are_no_evidence(version: str, refused: bool, says: Says) -> None:
    spec = run_of_next()
    records = (Round(engine_version="0.5.6", replicates=(ReplicateRecord(arm="wide", version=version),)),)
    found = list(_other_versions(spec, records))
    assert bool(found) is refused
    says(*found)


def run_of_next() -> RunSpec:
    asked = example_run()
    own = replace(asked.server.engine, version="0.5.24", image="sglang:0.5.24")
    return replace(asked, arms=tuple(replace(arm, engine=own if arm.name == "wide" else None) for arm in asked.arms))
