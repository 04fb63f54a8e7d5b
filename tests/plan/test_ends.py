"""How a round ended that gave no result: every way in which pods and Jobs show it, as Kubernetes writes them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.rounds import arm_command

from paceline.engines.pod_template import CONCLUDE
from paceline.evidence import ENVIRONMENT, ArmCommand, Failure, RoundPlan
from paceline.evidence.failures import MANY
from paceline.plan.run.ends import deadlines, end_of, held_seconds, hopeless, killed_arm
from paceline.plan.run.snapshot import End, RoundJob
from paceline.plan.run.starting import IMAGES_PATIENCE, PULL_PATIENCE, image_seconds

ARM = "arm-wide"
BEGAN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def job(reason: str = "", message: str = "") -> dict[str, Any]:
    failed = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    return {"metadata": {"name": "run-0-0"}, "status": {"conditions": [failed] if reason else []}}


def pod(status: Mapping[str, Any] | None = None, **containers: Mapping[str, Any]) -> dict[str, Any]:
    """`arm` is the first arm's container; all but `conclude` run before it."""
    told = [{"name": {"arm": ARM}.get(name, name), "state": state} for name, state in containers.items()]
    statuses = {
        "initContainerStatuses": [one for one in told if one["name"] != CONCLUDE],
        "containerStatuses": [one for one in told if one["name"] == CONCLUDE],
    }
    return {
        "metadata": {"creationTimestamp": "2026-11-21T10:00:00Z"},
        "spec": {"nodeName": "gpu-0"},
        "status": {"startTime": "2026-11-21T10:00:00Z", **statuses, **(status or {})},
    }


def preparing(**state: Mapping[str, Any]) -> dict[str, Any]:
    """An init container of the user's own is in this state, so that the others have to wait."""
    held = {"waiting": {"reason": "PodInitializing"}}
    return pod(certificates=ended(0), **state, client=held, arm=held, conclude=held)


def ended(code: int, message: str = "", **more: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, **more}}


def refused(reason: str, message: str = "said") -> dict[str, Any]:
    """By the node's kubelet, before anything of it ran."""
    return pod({"phase": "Failed", "reason": reason, "message": message})


def disrupted(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "said"}]}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": "said"}}


GAVE_UP = job("BackoffLimitExceeded", "Job has reached the specified backoff limit")
LATE = job("DeadlineExceeded", "Job was active longer than specified deadline")


@pytest.mark.parametrize(
    ("job", "pod", "failure", "line"),
    [
        (GAVE_UP, pod(conclude=ended(1, "b\nWrapperError")), "ClientFailed", "the client exited with 1: WrapperError"),
        (GAVE_UP, pod(client=ended(137), arm=ended(70)), "ClientFailed", "the client stopped responding"),
        (GAVE_UP, pod(client=ended(0), arm=ended(137, reason="OOMKilled")), "OutOfMemory", "exited with 137: OOM"),
        (GAVE_UP, pod(arm=ended(128, reason="StartError")), "ServerCrashed", "arm-wide exited with 128: StartError"),
        (LATE, pod(client=ended(143), arm=ended(143)), "TimedOut", "DeadlineExceeded: Job was active longer"),
        (GAVE_UP, pod({"reason": "DeadlineExceeded", "message": "too long"}), "TimedOut", "BackoffLimitExceeded"),
        (GAVE_UP, pod({"reason": "Evicted", "message": "low on memory"}), "Evicted", "Evicted: low on memory"),
        (GAVE_UP, pod({"reason": "Preempting"}, arm=ended(143)), "Preempted", "Preempting"),
        (GAVE_UP, pod(disrupted("PreemptionByScheduler")), "Preempted", "PreemptionByScheduler: said"),
        (GAVE_UP, pod(disrupted("EvictionByEvictionAPI")), "Evicted", "EvictionByEvictionAPI: said"),
        (GAVE_UP, pod(disrupted("DeletionByPodGC")), "NodeLost", "DeletionByPodGC: said"),
        (GAVE_UP, pod(disrupted("SomethingNew")), "Evicted", "SomethingNew: said"),
        (GAVE_UP, preparing(warm=ended(1, "a\nno such bucket")), "ServerCrashed",
            "the init container warm exited with 1: no such bucket"),
        (GAVE_UP, preparing(warm=ended(2, "usage: warm")), "ServerCrashed", "warm exited with 2: usage: warm"),
        (GAVE_UP, preparing(warm=ended(137, reason="OOMKilled")), "OutOfMemory", "warm exited with 137: OOMKilled"),
        (GAVE_UP, refused("UnexpectedAdmissionError", "no healthy devices present"), "NodeRefused",
            "UnexpectedAdmissionError: no healthy devices present"),
        (GAVE_UP, refused("OutOfnvidia.com/gpu"), "NodeRefused", "OutOfnvidia.com/gpu: said"),
        (GAVE_UP, refused("OutOfcpu"), "NodeRefused", "OutOfcpu: said"),
        (GAVE_UP, refused("TopologyAffinityError"), "NodeRefused", "TopologyAffinityError: said"),
        (GAVE_UP, refused("NodeAffinity"), "NodeRefused", "NodeAffinity: said"),
        (GAVE_UP, refused("Evicted"), "Evicted", "Evicted: said"),
        (GAVE_UP, refused("NodeLost"), "NodeLost", "NodeLost: said"),
        (GAVE_UP, None, "Evicted", "its pod is gone"),
        (job(), pod(conclude=ended(0, "done")), "Unreadable", "the message does not begin with"),
    ],
)  # fmt: skip
def test_of_a_job_that_has_ended(job: dict[str, Any], pod: dict[str, Any] | None, failure: str, line: str) -> None:
    end = end_of(RoundJob(job=job, pod=pod), "the message does not begin with paceline1:")
    assert end.failure.name == failure
    assert line in end.line


@pytest.mark.parametrize(
    ("job", "pod", "killed"),
    [
        (GAVE_UP, pod(arm=ended(137, reason="OOMKilled")), "OutOfMemory"),
        (GAVE_UP, pod(arm=ended(137)), "ServerCrashed"),
        (GAVE_UP, pod(arm=ended(0), conclude=ended(1)), ""),
        (GAVE_UP, pod(arm=ended(70)), ""),
        (GAVE_UP, pod(arm=ended(143)), ""),
        (GAVE_UP, pod(warm=ended(137), arm=waiting("PodInitializing")), ""),
        (GAVE_UP, pod(disrupted("EvictionByEvictionAPI"), arm=ended(137)), ""),
        (GAVE_UP, {**pod(arm=ended(137)), "metadata": {"deletionTimestamp": "2026-11-21T10:00:00Z"}}, ""),
        (LATE, pod(arm=ended(137)), ""),
        (GAVE_UP, None, ""),
    ],
)  # fmt: skip
def test_of_an_arm_whose_whole_container_was_killed(job: dict[str, Any], pod: dict[str, Any], killed: str) -> None:
    """Nobody is blamed for what the cluster, the deadline or the client has ended."""
    container, end = killed_arm(RoundJob(job=job, pod=pod)) or ("", None)
    assert (container, end.failure.name if end else "") == (ARM if killed else "", killed)


def unplaced(reason: str) -> dict[str, Any]:
    """It waits for room, or for a queue: nothing is held, and it may wait for as long as it takes."""
    conditions = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/2 nodes"}]
    return {"metadata": {}, "spec": {}, "status": {"phase": "Pending", "conditions": conditions}}


def starting(sandbox: str | None) -> dict[str, Any]:
    """It has its node; whether its volumes and network are there, where the kubelet is new enough to say so."""
    conditions = [{"type": "PodReadyToStartContainers", "status": sandbox}] if sandbox else []
    return pod({"phase": "Pending", "conditions": conditions}, client=CREATING, arm=CREATING)


def untouched() -> dict[str, Any]:
    """It has its node, and no kubelet has taken note of it."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z"}
    return {"metadata": {}, "spec": {"nodeName": "gpu-0"}, "status": {"phase": "Pending", "conditions": [placed]}}


CREATING = waiting("ContainerCreating")
SAID = 'FailedMount: secret "x" not found'
UNSTARTED = f"its containers were not started within 10 minutes on gpu-0: {SAID}"
UNPULLED = f"its images were not pulled within an hour on gpu-0: {SAID}"
MISNAMED = "the container arm-wide never started: InvalidImageName: said"
FORBIDDEN = "the container arm-wide never started: ErrImageNeverPull: said"
WARMING = "the init container warm never started: ImagePullBackOff: said"
PULLING = "the container arm-wide never started: ImagePullBackOff: said"


@pytest.mark.parametrize(
    ("pod", "minutes", "expected"),
    [
        (pod(arm=waiting("ContainerCreating")), 29, None),
        (pod(arm=waiting("ImagePullBackOff")), 4, None),
        (pod(arm=waiting("ImagePullBackOff")), 5, (Failure.ImagePull, PULLING)),
        (pod(before=ended(0, finishedAt="2026-11-21T10:20:00Z"), arm=waiting("ImagePullBackOff")), 24, None),
        (pod(before=ended(0, finishedAt="2026-11-21T10:20:00Z"), arm=waiting("ImagePullBackOff")), 25,
         (Failure.ImagePull, PULLING)),
        (pod(arm=waiting("InvalidImageName")), 0, (Failure.ImagePull, MISNAMED)),
        (pod(arm=waiting("ErrImageNeverPull")), 0, (Failure.ImagePull, FORBIDDEN)),
        (preparing(warm=waiting("ImagePullBackOff")), 4, None),
        (preparing(warm=waiting("ImagePullBackOff")), 5, (Failure.ImagePull, WARMING)),
        (preparing(warm=waiting("PodInitializing")), 60, None),
        (preparing(warm={"running": {}}), 60, None),
        (unplaced("Unschedulable"), 600, None),
        (unplaced("SchedulingGated"), 600, None),
        (starting(sandbox="False"), 9, None),
        (starting(sandbox="False"), 10, (Failure.NotStarted, UNSTARTED)),
        (starting(sandbox="True"), 59, None),
        (starting(sandbox="True"), 60, (Failure.ImagePull, UNPULLED)),
        (starting(sandbox=None), 59, None),
        (starting(sandbox=None), 60, (Failure.ImagePull, UNPULLED)),
        (untouched(), 9, None),
        (untouched(), 10, (Failure.NotStarted, UNSTARTED)),
        (pod(disrupted("DeletionByTaintManager")), 0, None),
    ],
)  # fmt: skip
def test_of_a_job_that_goes_on(pod: dict[str, Any], minutes: int, expected: tuple[Failure, str] | None) -> None:
    round = RoundJob(job=with_plan(job()), pod=pod)
    end = End(failure=expected[0], line=expected[1]) if expected else None
    assert hopeless(round, SAID, BEGAN + timedelta(minutes=minutes)) == end


def test_a_volume_that_another_node_has_is_nobodys_fault() -> None:
    multi = 'FailedAttachVolume: Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) coder-0'
    end = hopeless(RoundJob(job=with_plan(job()), pod=starting("False")), multi, BEGAN + timedelta(minutes=10))
    assert end is not None
    assert (end.failure, end.failure.tries) == (Failure.VolumeInUse, MANY)
    assert multi in end.line


def test_a_round_that_does_not_start_is_looked_at_again_when_patience_ends() -> None:
    for sandbox, patience in (("False", timedelta(minutes=10)), ("True", IMAGES_PATIENCE)):
        assert deadlines(RoundJob(job=with_plan(job()), pod=starting(sandbox))) == (BEGAN + patience,)
    assert deadlines(RoundJob(job=with_plan(job()), pod=pod(arm={"running": {}}))) == ()


def with_plan(job: dict[str, Any], arms: tuple[ArmCommand, ...] = ()) -> dict[str, Any]:
    plan = RoundPlan(
        run="run", round=0, try_=0, served_name="m", arms=arms,
        workloads=(), results_dir="/r",
    )  # fmt: skip
    container = {"env": [{"name": ENVIRONMENT, "value": plan.to_json()}]}
    return {**job, "spec": {"template": {"spec": {"initContainers": [container]}}}}


def test_of_a_node_that_does_not_answer_nobody_hears_the_end() -> None:
    lost = pod(disrupted("DeletionByTaintManager"))
    lost["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    end = hopeless(RoundJob(job=with_plan(job()), pod=lost), "", BEGAN)
    assert end == End(failure=Failure.NodeLost, line="DeletionByTaintManager: said")


def test_a_round_holds_accelerators_from_its_node_until_its_last_container_has_ended() -> None:
    both = {
        "arm": ended(0, finishedAt="2026-11-21T10:19:58Z"),
        "conclude": ended(0, finishedAt="2026-11-21T10:20:00Z"),
    }
    assert held_seconds(RoundJob(job=job(), pod=pod(**both)), BEGAN) == 1200
    still = pod(arm=both["arm"], conclude={"running": {}})
    assert held_seconds(RoundJob(job=job(), pod=still), BEGAN + timedelta(seconds=30.5)) == 31
    assert held_seconds(RoundJob(job=job(), pod=None), BEGAN) is None


def test_who_waits_for_an_init_container_that_failed_holds_nothing_after_it() -> None:
    failed = preparing(warm=ended(1, finishedAt="2026-11-21T10:00:40Z"))
    assert held_seconds(RoundJob(job=job(), pod=failed), BEGAN + timedelta(hours=1)) == 40


def test_a_round_whose_init_container_cannot_be_pulled_is_looked_at_again_in_time() -> None:
    round = RoundJob(job=with_plan(job()), pod=preparing(warm=waiting("ImagePullBackOff")))
    assert deadlines(round) == (BEGAN + PULL_PATIENCE,)


def test_they_are_taken_when_the_pod_gets_its_node_and_not_when_that_takes_note_of_it() -> None:
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T09:59:30Z"}
    ends = {
        "arm": ended(0, finishedAt="2026-11-21T10:19:00Z"),
        "conclude": ended(0, finishedAt="2026-11-21T10:20:00Z"),
    }
    assert held_seconds(RoundJob(job=job(), pod=pod({"conditions": [placed]}, **ends)), BEGAN) == 1230
    unseen = pod({"conditions": [placed]})
    del unseen["status"]["startTime"]
    assert held_seconds(RoundJob(job=job(), pod=unseen), BEGAN) == 30
    assert (
        held_seconds(RoundJob(job=job(), pod=pod({"conditions": [{**placed, "status": "False"}]}, **ends)), BEGAN)
        == 1200
    )


def test_what_the_cluster_takes_away_is_tried_again_most() -> None:
    nobodys = (
        Failure.NodeLost,
        Failure.NodeRefused,
        Failure.Evicted,
        Failure.JobDeleted,
        Failure.Preempted,
        Failure.VolumeInUse,
    )
    assert {failure.tries for failure in nobodys} == {MANY}


def ran(since: int, until: int | None = None) -> dict[str, Any]:
    """From this second on, after the pod got its node."""
    times = {
        key: f"{BEGAN + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ}"
        for key, at in (("startedAt", since), ("finishedAt", until))
        if at is not None
    }
    return {"terminated": times} if until else {"running": times}


@pytest.mark.parametrize(
    ("containers", "waits"),
    [
        ({"client": ran(2), "baseline": ran(95, 300), "wide": ran(302, 500)}, {"baseline": 93.0, "wide": 2.0}),
        ({"client": ran(2, 600), "baseline": ran(2, 300), "wide": waiting("PodInitializing")}, {}),
        ({"client": waiting("PodInitializing")}, {}),
        # At a desk all containers have the times of the round.
        ({"client": ran(0, 600), "baseline": ran(0, 600), "wide": ran(0, 600)}, {}),
    ],
)
def test_how_long_an_arm_waited_for_its_image(containers: Mapping[str, Any], waits: Mapping[str, float]) -> None:
    named = {{"baseline": "arm-baseline", "wide": ARM}.get(name, name): state for name, state in containers.items()}
    of_both = with_plan(job(), arms=(arm_command("baseline", candidate=False), arm_command("wide")))
    assert image_seconds(RoundJob(job=of_both, pod=pod(**named))) == waits
