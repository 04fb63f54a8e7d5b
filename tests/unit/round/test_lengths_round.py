"""Servers whose greedy answers part and end elsewhere, in whole rounds, as those of real engines do under load: a round
that is so is evidence, and a candidate that writes otherwise again and again is rejected for it.

Both rounds run beside each other: they are slow and idle.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from tests.support.running import free_port
from tests.support.verdicts import concluded, question, recorded
from tests.unit.round.pod import Outcome, begin, workload, write_models
from tests.unit.round.test_round import published_pair

CODE = workload("code", 16, 48, 800)
"""Answers of 150 to 700 tokens, which end by themselves."""
ROUNDS = 3
WAYS: Mapping[str, Mapping[str, str]] = {
    "parted": {"PACELINE_EMULATE_DIVERGE": "0.7"},
    "shorter": {
        "PACELINE_EMULATE_DIVERGE": "0.9",
        "PACELINE_EMULATE_DIVERGE_WHEN": "speculative",
        "PACELINE_EMULATE_DIVERGE_LENGTH": "0.86",
        "PACELINE_EMULATE_DIVERGE_SPREAD": "0.05",
    },
}


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Outcome]]:
    with ExitStack() as stack:
        pods = {}
        for name, env in WAYS.items():
            models, port = write_models(tmp_path_factory.mktemp("round")), free_port()
            arms = published_pair(models, port)
            pods[name] = begin(models, port, arms, CODE, PACELINE_HEARTBEAT_SECONDS="60", POD_UID="a pod", **env)
            stack.callback(pods[name].end)
        ended = {name: pod.finish() for name, pod in pods.items()}
        for one in ended.values():
            assert (one.client, one.wrapper) == (0, 0), one.log + one.message
        yield ended


def tokens(one: Outcome, arm: str) -> int:
    (found,) = (replicate.points[0].output_tokens for replicate in one.result.replicates if replicate.arm == arm)
    assert found is not None
    return found


@pytest.mark.xdist_group("lengths")
def test_answers_that_part_are_other_ones_on_each_server_and_evidence(rounds: Mapping[str, Outcome]) -> None:
    parted = rounds["parted"]
    assert tokens(parted, "wide") != tokens(parted, "baseline")
    assert {one.why for one in parted.judged.values()} == {""}


@pytest.mark.xdist_group("lengths")
def test_a_candidate_that_writes_less_is_rejected_over_the_run_and_not_by_the_round(
    rounds: Mapping[str, Outcome],
) -> None:
    """About 12 % less: each round is evidence, and three of them show it."""
    shorter = rounds["shorter"]
    assert -0.2 < math.log(tokens(shorter, "wide") / tokens(shorter, "baseline")) < -0.07
    assert {one.why for one in shorter.judged.values()} == {""}
    spec = question("wide", (CODE,))
    spec = dataclasses.replace(spec, gate=dataclasses.replace(spec.gate, decide_after_rounds=(ROUNDS,)))
    plans = [dataclasses.replace(shorter.plan, round=number) for number in range(ROUNDS)]
    conclusion = concluded(spec, [recorded(plan, shorter.result) for plan in plans])
    assert conclusion is not None
    verdict = conclusion.verdict
    assert verdict
    assert (verdict.outcome, verdict.reason) == ("Reject", "LengthsDiffer")
    assert "% fewer tokens than the baseline" in verdict.message
