"""Whole rounds of arms whose depth the engine chooses: they rest at some loads, and their speed is what is judged."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.in_status import measurements, round_status
from tests.support.vllm_server import BASE, HEAD
from tests.unit.round.pod import CHAT_8, CODE_1, Arms, Outcome, Start, workload
from tests.unit.round.test_round import emulated
from tests.unit.round.test_vllm_round import PATH, command, of_vllm

from paceline.core import CUSTOM, Adaptive, Arm, ArmOutcome, ArmVerdict, Custom, Depth, Draft, Gate, Workload
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, Point
from paceline.gate import decide

CODE_8 = workload("code", 8, 32, 64)
EAGLE3 = Draft(algorithm="EAGLE3", model=HEAD)


STATIC = ("--speculative-num-steps", "3", "--enable-two-batch-overlap")


def chooses(arm: ArmCommand) -> ArmCommand:
    return dataclasses.replace(arm, engine_chooses_depth=True)


def verdict(outcome: Outcome, arm: str, *workloads: str, times: Mapping[str, float] | None = None) -> ArmVerdict:
    """Of twelve such rounds, as many as any number of looks asks for; `times` as fast as the baseline by workload, in
    place of what this machine had time for."""
    status = round_status(outcome.plan, outcome.result, tuple(outcome.judged.values()), "job", "node")
    points = {(one["arm"], one["workload"]): one for one in status["points"]}
    for name, factor in (times or {}).items():
        base = float(points["baseline", name]["steadyThroughput"])
        points[arm, name]["steadyThroughput"] = str(factor * base)
    found = measurements([{**status, "round": number} for number in range(12)])
    kept = [one for one in found if one.workload in workloads]
    return decide(Gate(), ("baseline", arm), dict.fromkeys(workloads, 1.0), kept).arms[arm]


@pytest.fixture
def adaptive(models: Path, port: int) -> Arms:
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    said = {"speculative_algorithm": "EAGLE3", "speculative_adaptive": True, "speculative_eagle_topk": 1}
    arm = emulated(models, port, "adaptive", *head, "--speculative-adaptive", "--speculative-eagle-topk", "1", **said)
    return emulated(models, port, "baseline", speculative_algorithm=None), chooses(arm)


RESTS_FROM_3 = {
    "1": {"candidate_steps": [1, 3, 5, 7], "down_hysteresis": -0.25},
    "3": {"candidate_steps": [0]},
}
"""SGLang's own rests from 64 requests on, and a busy machine has not that many under way: eight are asked for, fewer
will do. That resting is slower than no head at all is in tests/unit/emulator/test_depth.py."""


def by_table(arm: ArmCommand, path: Path, table: object) -> ArmCommand:
    path.write_text(json.dumps(table))
    return dataclasses.replace(arm, argv=(*arm.argv, f"--speculative-adaptive-config={path}"))


def test_sglang_at_depth_0_is_measured_and_its_speed_decides(start: Start, adaptive: Arms, tmp_path: Path) -> None:
    """Alone it drafts; eight at a time it verifies the root alone, which counts calls of length 1."""
    arms = adaptive[0], by_table(adaptive[1], tmp_path / "table.json", RESTS_FROM_3)
    outcome = start(arms, CODE_1, CODE_8).finish()
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    alone, crowded = point(outcome, "adaptive", "code@1"), point(outcome, "adaptive", "code@8")
    assert (alone.accept_length or 0) > 2
    assert (alone.draft_tokens or 0) >= 3
    assert (crowded.accept_length or 9) < 1.3
    assert (crowded.verify_calls or 0) > 1000
    depth = 9 if crowded.draft_tokens is None else crowded.draft_tokens
    assert depth < (alone.draft_tokens or 0), "of a look or two, the last of which may see few requests left"
    assert not any(one.nothing_accepted for one in outcome.judged.values())
    for at_rest, decided in ((0.9, ArmOutcome.REJECTED), (1.0, ArmOutcome.PROMOTABLE)):
        found = verdict(outcome, "adaptive", "code@1", "code@8", times={"code@1": 1.3, "code@8": at_rest})
        assert (found.outcome, found.reason != "NothingAccepted") == (decided, True), found.message


def test_an_arm_that_never_speculates_is_rejected(start: Start, adaptive: Arms, tmp_path: Path) -> None:
    """By a table of its own, which has depth 0 alone: it verifies, and nothing is ever accepted."""
    resting = by_table(adaptive[1], tmp_path / "table.json", {"1": {"candidate_steps": [0]}})
    outcome = start((adaptive[0], resting), CODE_1, CHAT_8).finish()
    judged = [outcome.judged["adaptive", name] for name in ("code@1", "chat@8")]
    assert [(one.valid, one.at_rest, one.nothing_accepted) for one in judged] == [(True, False, True)] * 2, outcome.log
    assert verdict(outcome, "adaptive", "code@1", "chat@8").reason == "NothingAccepted"


def test_what_cannot_adapt_is_not_measured_as_if_it_did(start: Start, adaptive: Arms) -> None:
    spread = dataclasses.replace(adaptive[1], argv=(*adaptive[1].argv, *STATIC))
    (replicate,) = start((spread,), CODE_1).finish().result.replicates
    assert "speculative_adaptive=False" in replicate.error


def test_an_algorithm_that_no_rule_knows(start: Start, models: Path, port: int) -> None:
    flags = ("--speculative-algorithm", "UNO", "--speculative-num-draft-tokens=4", "--uno-lora-path=/models/uno")
    said = {"speculative_algorithm": "UNO", "speculative_num_draft_tokens": 4, "uno_lora_path": "/models/uno"}
    arms = emulated(models, port, "baseline"), chooses(emulated(models, port, "uno", *flags, **said))
    moved = ENGINES["SGLang"].moved((Arm(name="uno", draft=Draft(algorithm=CUSTOM, name="UNO"), custom=Custom()),))
    outcome = start(arms, CODE_1, change=lambda plan: dataclasses.replace(plan, moved=moved)).finish()
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    other = dataclasses.replace(arms[1], expected={**said, "speculative_num_draft_tokens": 8})
    assert other.other_than_expected(outcome.result.replicates[1].resolved).endswith("=4, not 8")


Vllm = Callable[..., Outcome]


@pytest.fixture
def vllm(start: Start, models: Path, port: int) -> Vllm:
    def run(arm: Arm, *workloads: Workload, extra: tuple[str, ...] = ()) -> Outcome:
        told = chooses(command(models, port, arm))
        arms = command(models, port, BASE), dataclasses.replace(told, argv=(*told.argv, *extra))
        return start(arms, *workloads, change=of_vllm, PATH=PATH).finish()

    return run


def point(outcome: Outcome, arm: str, workload: str) -> Point:
    found = outcome.judged[arm, workload].point
    assert found, outcome.log
    return found


FALLING = (Depth(from_batch_size=1, num_steps=4), Depth(from_batch_size=8, num_steps=0))


def test_vllm_at_depth_0_counts_nothing_and_is_measured(vllm: Vllm) -> None:
    outcome = vllm(Arm(name="falling", draft=EAGLE3, depth_by_batch_size=FALLING), CODE_1, CODE_8)
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    alone, eight = point(outcome, "falling", "code@1"), point(outcome, "falling", "code@8")
    assert alone.draft_tokens == 4
    assert (alone.verify_calls or 0) > 50
    left_over = (eight.verify_calls or 0) / (eight.output_tokens or 1)
    assert left_over < 0.25, "the requests that end last run fewer at a time"
    assert outcome.result.replicates[1].resolved["speculative_depth"] == "schedule"


def test_a_schedule_that_vllm_drops_is_not_measured(vllm: Vllm) -> None:
    outcome = vllm(
        Arm(name="falling", draft=EAGLE3, depth_by_batch_size=FALLING), CODE_1, extra=("--data-parallel-size=2",)
    )
    assert "speculative_depth=fixed" in outcome.result.replicates[1].error


def test_vllms_adaptive_verification_is_measured(vllm: Vllm) -> None:
    outcome = vllm(Arm(name="adaptive", draft=EAGLE3, adaptive=Adaptive()), CODE_1, CODE_8)
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    alone, eight = point(outcome, "adaptive", "code@1"), point(outcome, "adaptive", "code@8")
    assert (alone.draft_tokens, eight.draft_tokens) == (7, 7), "what is left out on the device is not counted"
    assert (alone.accept_length or 0) > (eight.accept_length or 9)
    assert outcome.result.replicates[1].resolved["speculative_depth"] == "adaptive"


def test_adaptive_verification_beside_lora_ends_the_server(vllm: Vllm) -> None:
    outcome = vllm(Arm(name="adaptive", draft=EAGLE3, adaptive=Adaptive()), CODE_1, extra=("--enable-lora",))
    assert "Adaptive verification is not currently compatible with LoRA" in outcome.result.replicates[1].error


def test_a_method_of_vllm_that_has_no_word(vllm: Vllm) -> None:
    arm = Arm(name="suffix", draft=Draft(algorithm=CUSTOM, name="suffix"), custom=Custom())
    outcome = vllm(arm, CODE_1)
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    assert outcome.result.replicates[1].resolved["method"] == "suffix"
