"""Outputs compared in whole rounds: servers that answer alike, nearly, otherwise, or not as they are asked.

Several rounds run beside each other: they are slow and idle.
"""

import dataclasses
import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from tests.support.running import free_port
from tests.support.verdicts import concluded, outcome, question, recorded
from tests.unit.round.pod import Outcome, begin, workload, write_models
from tests.unit.round.test_round import emulated

from paceline.core import Parity
from paceline.evidence import Outputs, RoundPlan

CODE = workload("code", 1, 4, 24)
PARITY = Parity(samples=8, max_tokens=32)
TOKEN = 5
LEAVES = {"PACELINE_EMULATE_LEAVE_AT": str(TOKEN), "PACELINE_EMULATE_LEAVE_AT_WHEN": "speculative"}
WAYS: Mapping[str, Mapping[str, str]] = {
    "alike": {},
    "nearly": {**LEAVES, "PACELINE_EMULATE_LEAVE_GAP": "0.2", "PACELINE_EMULATE_LEAVE_FRACTION": "0.5"},
    "otherwise": {**LEAVES, "PACELINE_EMULATE_LEAVE_GAP": "1.7", "PACELINE_EMULATE_LEAVE_FRACTION": "0.5"},
    "no logprobs": {"PACELINE_EMULATE_LOGPROBS": "false"},
    "another baseline": {**LEAVES, "PACELINE_EMULATE_LEAVE_AT_WHEN": "baseline"},
}


def with_parity(plan: RoundPlan) -> RoundPlan:
    return dataclasses.replace(plan, parity=PARITY, parity_required=True)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Outcome]]:
    with ExitStack() as stack:
        pods = {}
        for name, env in WAYS.items():
            models, port = write_models(tmp_path_factory.mktemp("round")), free_port()
            tree = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens")
            head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
            wide = emulated(models, port, "wide", *head, *tree, "8", speculative_num_steps=3)
            baseline = emulated(models, port, "baseline", speculative_algorithm=None)
            arms = (wide, baseline) if name == "alike" else (baseline, wide)
            pods[name] = begin(models, port, arms, CODE, change=with_parity, PACELINE_HEARTBEAT_SECONDS="60", **env)
            stack.callback(pods[name].end)
        ended = {name: pod.finish() for name, pod in pods.items()}
        for one in ended.values():
            assert (one.client, one.wrapper) == (0, 0), one.log + one.message
        yield ended


def found(one: Outcome, arm: str = "wide") -> Outputs:
    outputs = {replicate.arm: replicate.outputs for replicate in one.result.replicates}[arm]
    assert outputs is not None
    return outputs


def verdict(*ended: Outcome) -> str:
    """What two such rounds come to."""
    spec = dataclasses.replace(question("wide", (CODE,)), parity=PARITY)
    plans = [dataclasses.replace(one.plan, round=number) for number, one in enumerate(ended)]
    concluding = concluded(spec, [recorded(p, one.result) for p, one in zip(plans, ended, strict=True)])
    return f"{outcome(concluding)} {concluding.verdict.reason}" if concluding else "goes on"


@pytest.mark.xdist_group("parity")
def test_arms_that_answer_alike(rounds: Mapping[str, Outcome]) -> None:
    """The candidate ran first: they are compared when both have answered."""
    alike = rounds["alike"]
    assert found(alike) == Outputs(samples=8)
    assert len(set(found(alike, "baseline").digests)) == 8
    assert {one.why for one in alike.judged.values()} == {""}
    assert verdict(alike, alike) == "goes on"


@pytest.mark.xdist_group("parity")
def test_near_ties_are_told_and_nobody_is_blamed(rounds: Mapping[str, Outcome]) -> None:
    nearly = found(rounds["nearly"])
    assert 1 <= nearly.near_ties == 8 - nearly.identical
    assert (nearly.diverged, nearly.first, nearly.gap) == ((), TOKEN, pytest.approx(0.2))
    assert verdict(rounds["nearly"], rounds["nearly"]) == "goes on"


@pytest.mark.xdist_group("parity")
def test_other_answers_reject_a_candidate_once_the_baseline_has_agreed_with_itself(
    rounds: Mapping[str, Outcome],
) -> None:
    otherwise = rounds["otherwise"]
    outputs = found(otherwise)
    assert len(outputs.diverged) == found(rounds["nearly"]).near_ties
    assert (outputs.near_ties, outputs.first, outputs.gap) == (0, TOKEN, pytest.approx(1.7))
    assert {one.why for one in otherwise.judged.values()} == {""}
    assert verdict(otherwise) == "goes on"
    assert verdict(otherwise, otherwise) == "Reject OutputsDiffer"


@pytest.mark.xdist_group("parity")
def test_a_baseline_that_answers_anew_blames_nobody(rounds: Mapping[str, Outcome]) -> None:
    """In one of the rounds the baseline gave other answers than in the other, and there the candidate left them."""
    here, there = rounds["another baseline"], rounds["alike"]
    changed = {n for n, (a, b) in enumerate(zip(*(found(one, "baseline").digests for one in (here, there)))) if a != b}  # noqa: B905
    assert changed == set(found(here).diverged) != set()
    assert verdict(here, there) == "goes on"


@pytest.mark.xdist_group("parity")
def test_a_server_that_gives_no_logprobs_is_no_evidence(rounds: Mapping[str, Outcome]) -> None:
    refused = rounds["no logprobs"]
    why = refused.judged["wide", "code@1"].why
    assert "HTTP 400" in why
    assert refused.judged["baseline", "code@1"].valid
    assert verdict(refused, refused) == "Error NotMeasured"


@pytest.mark.xdist_group("parity")
def test_whole_answers_are_on_the_volume(rounds: Mapping[str, Outcome]) -> None:
    with gzip.open(rounds["otherwise"].plan.lines_path, "rt") as lines:
        kept = [one for one in map(json.loads, lines) if "prompt" in one]
    assert [(one["arm"], one["prompt"]) for one in kept] == [(a, n) for a in ("baseline", "wide") for n in range(8)]
    texts = {(one["arm"], one["prompt"]): one["answer"]["choices"][0]["message"]["content"] for one in kept}
    differing = [n for n in range(8) if texts["baseline", n] != texts["wide", n]]
    assert differing == list(found(rounds["otherwise"]).diverged)
