"""What is wrong is refused, or said in the words of whoever noticed it, and is never taken for a verdict."""

from collections.abc import Iterator

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import candidate, emulated, small
from tests.support.kubernetes import Manifest, Namespace, condition, labels_of, says
from tests.support.queries import finished, pool_of, run_of, served, stalled

TRITON = "--attention-backend=triton"


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    """All but the refused one, side by side on one cache: what goes wrong with one is nothing to the others."""
    with namespace_for("bad-input") as fresh:
        unknown = [TRITON, "--no-such-flag=1"]
        fresh.apply(small("flag", hub, engine={"args": unknown}))
        fresh.apply(small("newer", hub, engine={"args": unknown, "version": "0.9.0"}))
        fresh.apply(small("failing", hub, engine={"env": emulated(FAIL_FRACTION="0.5")}))
        # It dies of the twelfth request, after two windows of warm-up; the baseline does not.
        dying = emulated(DIE_AFTER_REQUESTS="12", DIE_AFTER_REQUESTS_WHEN="speculative")
        fresh.apply(small("dying", hub, engine={"env": dying}))
        fresh.apply(small("mismatched", hub, draft=head("mismatched-head")))
        fresh.apply(small("wrong", hub, draft=head("wrong-size-head")))
        fresh.apply(small("unreachable", hub, draft=head("unreachable-head")))
        fresh.apply(small("absent", hub, draft=head("no-such-head")))
        yield fresh


def test_an_infeasible_tree_is_refused_with_the_right_value(here: Namespace, hub: str) -> None:
    chain = candidate({"numSteps": 5, "topK": 1, "numDraftTokens": 8})
    said = here.refused(small("infeasible", hub, candidates=[chain]))
    assert "spec.candidates[0].tree.numDraftTokens" in said
    assert "numDraftTokens must be numSteps + 1 = 6 if topK is 1 (a chain); got 8" in said


def test_a_flag_that_the_release_does_not_have_stalls_before_anything_is_started(here: Namespace) -> None:
    deployment = here.wait("Stalled", stalled(here, "flag"), 30)
    assert says(deployment, "Stalled", "True", "InvalidSpec")
    assert "SGLang 0.5.23 has no flag --no-such-flag" in message(deployment, "Stalled")


def test_a_flag_that_only_the_server_knows_to_be_wrong_stalls_with_its_last_line(here: Namespace) -> None:
    """Which flags a release newer than ours has, its server knows."""
    deployment = here.wait("Stalled", stalled(here, "newer"), 60)
    assert says(deployment, "Stalled", "True", "ServerFailed")
    assert says(deployment, "Ready", "False", "Crashing")
    assert message(deployment, "Stalled").endswith("error: unrecognized arguments: --no-such-flag=1")


def test_a_head_for_another_target_stalls_before_a_gpu_is_taken(here: Namespace) -> None:
    deployment = here.wait("Stalled", stalled(here, "wrong"), 60)
    assert says(deployment, "Stalled", "True", "PreflightFailed")
    assert "reads hidden states of 4096, the target's have 2048" in message(deployment, "Stalled")
    pods = here.list("pods", "paceline.dev/deployment=wrong")
    assert [labels_of(pod)["paceline.dev/component"] for pod in pods] == ["fetch"]


def test_a_head_that_reads_what_the_release_cannot_hand_out_stalls_before_a_gpu_is_taken(here: Namespace) -> None:
    deployment = here.wait("Stalled", stalled(here, "unreachable"), 60)
    assert says(deployment, "Stalled", "True", "PreflightFailed")
    assert "of which a target of 48 layers has no 48" in message(deployment, "Stalled")
    pods = here.list("pods", "paceline.dev/deployment=unreachable")
    assert [labels_of(pod)["paceline.dev/component"] for pod in pods] == ["fetch"]


def test_a_repository_that_is_not_there_stalls_with_its_name(here: Namespace) -> None:
    deployment = here.wait("Stalled", stalled(here, "absent"), 60)
    assert says(deployment, "Stalled", "True", "PrefetchFailed")
    assert "paceline-test/no-such-head" in message(deployment, "Stalled")


def test_half_of_the_requests_failing_is_an_error(here: Namespace) -> None:
    run = verdict(here, "failing")
    assert outcome(run) == ("Error", "")
    assert "3 of 6 requests completed" in run["status"]["verdict"]["message"]
    assert not any(point["valid"] for round in run["rounds"] for point in round["points"])
    nothing_is_claimed(here, "failing")


def test_a_server_that_dies_in_a_round_is_an_error(here: Namespace) -> None:
    run = verdict(here, "dying")
    assert outcome(run) == ("Error", "")
    for round in run["rounds"]:
        ended = {replicate["arm"]: replicate.get("exitCode") for replicate in round["replicates"]}
        assert ended["baseline"] is None
        assert ended["wide"] not in (None, 0)
    nothing_is_claimed(here, "dying")


def test_a_head_that_accepts_nothing_is_rejected_after_one_round(here: Namespace) -> None:
    run = verdict(here, "mismatched")
    assert outcome(run) == ("Reject", "")
    assert run["status"]["verdict"]["reason"] == "NothingAccepted"
    assert len(run["rounds"]) == 1
    here.wait(
        "it to be told", lambda: says(here.get("specdep", "mismatched"), "Promoted", "False", "NothingAccepted"), 10
    )
    assert served(here, "mismatched", "baseline")()


def verdict(here: Namespace, name: str) -> Manifest:
    run = here.wait(f"a run of {name}", run_of(here, name), 90)
    return here.wait(f"a verdict on {name}", finished(here, run), 150)


def outcome(run: Manifest) -> tuple[str, str]:
    found = run["status"]["verdict"]
    return found["outcome"], found["winner"]


def nothing_is_claimed(here: Namespace, name: str) -> None:
    """The baseline goes on serving, and the candidate is neither promoted nor called slower."""
    decided = here.wait("it to be told", lambda: told(here, name), 10)
    assert decided["reason"] == "BenchmarkError"
    deployment = here.get("specdep", name)
    assert says(deployment, "Promoted", "False", "NotDecided")
    assert pool_of(deployment)["serving"]["arm"] == "baseline"
    assert "speedup" not in pool_of(deployment)["verdict"]["evidence"]


def head(name: str) -> Manifest:
    return {"algorithm": "EAGLE3", "source": f"hf://paceline-test/{name}"}


def message(manifest: Manifest, kind: str) -> str:
    return str((condition(manifest, kind) or {}).get("message"))


def told(here: Namespace, name: str) -> Manifest | None:
    found = condition(here.get("specdep", name), "Decided")
    return found if found and found["reason"] != "Undecided" else None
