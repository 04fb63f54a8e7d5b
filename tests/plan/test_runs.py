"""Runs that go wrong: what is recorded, what is tried again, how they end."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.answers import half_failed, noisy, shared
from tests.support.containers import container
from tests.support.edits import example_run
from tests.support.messages import Says
from tests.support.world import World, example

from paceline import api
from paceline.api.round import with_rounds
from paceline.core.manifest import Manifest
from paceline.evidence import ENVIRONMENT
from paceline.evidence.failures import FEW, MANY
from paceline.plan.simulation import controllers
from paceline.plan.step import Delete

COMMIT = "0123456789" * 4
PROMPTS = {"name": "code", "source": "hf://datasets/paceline-test/prompts/code.jsonl", "concurrency": 32}


def by_hand(edit: Mapping[str, Any] | None = None, **metadata: Any) -> World:
    """A world with the run of the throughput pool, made by hand; `edit` changes its spec."""
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": "models", "labels": {"paceline.dev/pool": "throughput"}}
    manifest["metadata"] |= metadata
    manifest["spec"]["target"]["commit"] = COMMIT
    for arm in manifest["spec"]["arms"][1:]:
        arm["draft"]["commit"] = COMMIT
    manifest["spec"] |= edit or {}
    world = World()
    world.apply(manifest)
    return world


def measured(*pools: str) -> World:
    """The example with its first round under way."""
    world = World()
    world.apply(example(*pools))
    world.prefetch_ends()
    world.servers_ready()
    return world


def run_of(world: World) -> Manifest:
    (run,) = world.cluster.of("BenchmarkRun")
    return with_rounds(run, world.cluster.of("BenchmarkRound"))


def verdict(world: World) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run_of(world)["status"].get("verdict", {})
    return found


def job_of(world: World) -> Manifest:
    (job,) = world.under_way("round")
    return job


def pod_of(world: World) -> Manifest:
    (pod,) = world.cluster.owned("Pod", job_of(world))
    return pod


def test_the_baseline_stands_first() -> None:
    arms = example_run()["spec"]["arms"]
    with pytest.raises(api.InvalidManifestError, match="the first of arms must be 'baseline'"):
        api.run({"spec": example_run()["spec"] | {"arms": [arms[1], arms[0]]}})


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({"target": example_run()["spec"]["target"]}, "spec.target.commit"),
        ({"arms": example_run()["spec"]["arms"]}, "spec.arms[1].draft.commit"),
        ({"workloads": [PROMPTS]}, "spec.workloads[0].commit"),
        ({"workloads": [{**PROMPTS, "commit": "0" * 40}]}, "spec.workloads[0].commit"),
        ({"engine": {**example_run()["spec"]["engine"], "args": ["--no-such=1"]}}, "--no-such"),
        ({"engine": {**example_run()["spec"]["engine"], "args": ["--tp=8"]}}, "--tp"),
        ({"target": {"source": "s3://models/qwen", "servedName": "qwen"}}, "spec.target.commit"),
    ],
)
def test_a_run_by_hand_that_cannot_be_carried_out(edit: Mapping[str, Any], named: str, says: Says) -> None:
    world = by_hand(edit)
    assert not world.under_way("round")
    assert named in verdict(world)["message"]
    says(verdict(world)["message"])


@pytest.mark.parametrize("edit", [{}, {"workloads": [{**PROMPTS, "commit": COMMIT}]}])
def test_a_run_by_hand_is_measured(edit: Mapping[str, Any]) -> None:
    world = by_hand(edit)
    for _ in range(3):
        world.round_ends()
    assert verdict(world)["outcome"] == "Promote"


def test_a_plan_that_cannot_be_read_is_a_failed_round(says: Says) -> None:
    """The Job of another release: it goes, and the round is asked anew."""
    world = by_hand()
    job = job_of(world)
    (asked,) = (one for one in container(job["spec"]["template"], "client")["env"] if one["name"] == ENVIRONMENT)
    asked["value"] = "{}"
    world.settle("another release takes over", 1)
    (record,) = run_of(world)["rounds"]
    assert (record["round"], record["try"], record["job"]) == (0, 0, job["metadata"]["name"])
    says(record["error"])
    world.until_wake()
    assert job_of(world)["metadata"]["name"].endswith("-0-1")


def unpullable(world: World) -> None:
    """The first arm has no image."""
    pod_of(world)["status"]["initContainerStatuses"] = [
        {"name": "client", "state": {"running": {}}},
        {"name": "arm-wide", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
    ]
    world.settle("the server's image cannot be pulled", 30)


def test_a_server_that_never_starts_keeps_no_gpu() -> None:
    world = by_hand()
    first = job_of(world)["metadata"]["name"]
    unpullable(world)
    (record,) = run_of(world)["rounds"]
    assert (record["job"], record["reason"]) == (first, "ImagePull")
    assert "arm-wide never started: ImagePullBackOff: no such image" in record["error"]
    for _ in range(FEW - 1):
        world.until_wake()
        assert job_of(world)["metadata"]["name"] != first
        unpullable(world)
    assert not world.under_way("round")
    assert "ImagePullBackOff" in verdict(world)["message"]


def test_its_delete_is_lost_and_it_counts_once() -> None:
    world = by_hand()
    world.crash = lambda actions: [one for one in actions if not isinstance(one, Delete)]
    pod_of(world)["status"]["initContainerStatuses"] = [
        {"name": "client", "state": {"waiting": {"reason": "ErrImageNeverPull"}}},
        {"name": "arm-wide", "state": {"waiting": {"reason": "PodInitializing"}}},
    ]
    controllers.step(world.cluster)
    for _ in range(3):
        world.reconcile(("BenchmarkRun", "mine"))
    assert len(run_of(world)["rounds"]) == 1
    world.crash = lambda actions: actions
    world.settle("the operator is back", 1)
    world.wait(1)
    assert len(run_of(world)["rounds"]) == 1
    assert job_of(world)["metadata"]["name"].endswith("-0-1")


def preempted(world: World) -> None:
    pod_of(world)["status"] |= {
        "reason": "Preempting",
        "message": "for a critical pod",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
    }
    world.round_dies("throughput", 143, "")


def test_preemption_is_nobodys_fault_but_not_for_ever() -> None:
    world = by_hand()
    for _ in range(MANY - 1):
        preempted(world)
        world.until_wake()
    assert verdict(world) == {}
    assert run_of(world)["rounds"][-1]["error"] == "Preempting: for a critical pod"
    preempted(world)
    assert verdict(world)["outcome"] == "Error"


def test_a_pod_that_is_gone_was_taken_away() -> None:
    world = by_hand()
    for _ in range(FEW):
        job = job_of(world)
        name = pod_of(world)["metadata"]["name"]
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        job["status"] = {"conditions": [failed]}
        world.cluster.delete("Pod", name)
        world.settle("a node is drained", 1)
        world.until_wake()
    assert verdict(world) == {}


def test_an_out_of_memory_kill_is_not_the_clients_fault() -> None:
    world = by_hand()
    world.round_dies("throughput", 1, "the container of arm-wide has exited")
    assert "client" in run_of(world)["rounds"][0]["error"]
    world.until_wake()
    pod = pod_of(world)
    job = job_of(world)
    pod["status"] |= {
        "initContainerStatuses": [
            {"name": "client", "state": {"terminated": {"exitCode": 0}}},
            {"name": "arm-wide", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
        ]
    }
    job["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    world.settle("the server was killed", 1)
    assert run_of(world)["rounds"][1]["error"] == "the container arm-wide exited with 137: OOMKilled"


def broken_after_the_first_look(world: World) -> None:
    assert verdict(world) == {}
    for _ in range(2):
        world.round_ends(baseline=half_failed)


def test_what_was_shown_outlives_a_broken_baseline(says: Says) -> None:
    """narrow is promotable, and wide not decided yet."""
    world = by_hand()
    world.round_ends(wide=half_failed)
    for _ in range(2):
        world.round_ends()
    broken_after_the_first_look(world)
    assert (verdict(world)["outcome"], verdict(world)["winner"]) == ("Promote", "narrow")
    says(verdict(world)["message"])


def test_what_was_looked_at_is_inconclusive_and_no_error() -> None:
    world = by_hand()
    for _ in range(3):
        world.round_ends(baseline=noisy, wide=noisy, narrow=noisy)
    broken_after_the_first_look(world)
    assert (verdict(world)["outcome"], verdict(world)["reason"]) == ("Inconclusive", "NotEnoughEvidence")


def test_failures_that_blame_nobodys_server_count_in_a_row(says: Says) -> None:
    """A server that somebody else uses now and then costs rounds, and no more."""
    world = by_hand()
    for spoiled in ({"narrow": shared}, {}, {"narrow": shared}, {}, {}):
        assert verdict(world) == {}
        world.round_ends(**spoiled)
    assert (verdict(world)["outcome"], verdict(world)["winner"]) == ("Promote", "narrow")
    says(verdict(world)["message"])


def test_no_run_measures_for_ever(says: Says) -> None:
    """Every other round is no evidence: it ends all the same."""
    world = by_hand({"gate": {"decideAfterRounds": [8]}})
    rounds = 0
    while not verdict(world):
        world.round_ends(**({"baseline": half_failed} if rounds % 2 else {}))
        rounds += 1
    assert rounds == 8 + 2 * 3
    says(verdict(world)["message"])


def owner(kind: str, controls: bool = True) -> Mapping[str, Any]:
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": kind,
        "name": "theirs",
        "uid": "named",
        "controller": controls,
    }


@pytest.mark.parametrize(
    ("references", "of"),
    [
        ([], "own"),
        ([owner("SpeculativeDeployment")], "named"),
        ([owner("SpeculativeDeployment", controls=False)], "own"),
        ([owner("Workflow")], "own"),
    ],
    ids=["nobody's", "a deployment's", "a deployment's that does not control it", "something else's"],
)
def test_whomever_a_run_names_as_its_owner_its_kernels_are_its_own_namespaces(
    references: list[Mapping[str, Any]], of: str
) -> None:
    """Within it a run may name another's deployment: docs/security.md says what that is worth."""
    world = by_hand(ownerReferences=references)
    mounts = container(job_of(world)["spec"]["template"])["volumeMounts"]
    (path,) = (mount["subPath"] for mount in mounts if mount["mountPath"] == "/jit")
    uid = run_of(world)["metadata"]["uid"] if of == "own" else of
    assert path.startswith(f"jit/models/{uid}/")
