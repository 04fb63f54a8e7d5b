"""What status keeps of the arms' answers, and what the gate reads of it again."""

import dataclasses

from tests.support.in_status import answers, round_status
from tests.support.rounds import PLAN

from paceline.core import Answers, Parity
from paceline.evidence import Outputs, RoundPlan, fingerprint, judge_points

from .test_round_status import RESULT

ASKED = dataclasses.replace(PLAN, parity=Parity(samples=4))
BASELINE = Outputs(digests=("0a1b", "0c0d", "1111", "ffff"))
WIDE = Outputs(samples=4, near_ties=1, diverged=(0, 3), first=7, gap=1.25)


def kept(baseline: Outputs | None = BASELINE, wide: Outputs | None = WIDE) -> dict[str, object]:
    pairs = zip(RESULT.replicates, (baseline, wide), strict=True)
    result = dataclasses.replace(RESULT, replicates=tuple(dataclasses.replace(r, outputs=o) for r, o in pairs))
    return round_status(ASKED, result, judge_points(ASKED, result), "job", "gpu-0")


def test_status_has_counts_and_where_they_differ() -> None:
    baseline, wide = (one["parity"] for one in kept()["replicates"])  # type: ignore[attr-defined]
    assert baseline == {"samples": 4, "outputs": "0a1b0c0d1111ffff"}
    assert wide == {
        "samples": 4,
        "identical": 1,
        "nearTies": 1,
        "diverged": 2,
        "divergedAt": [0, 3],
        "firstDivergence": 7,
        "largestGap": "1.25",
    }


def test_what_is_alike_has_no_place_where_it_differs() -> None:
    assert kept(wide=Outputs(samples=4))["replicates"][1]["parity"] == {  # type: ignore[index]
        "samples": 4,
        "identical": 4,
        "nearTies": 0,
        "diverged": 0,
    }


def test_the_gate_reads_the_baselines_digests_and_who_diverged_at_what() -> None:
    assert answers([kept()]) == [Answers(round=0, baseline=BASELINE.digests, diverged={"wide": frozenset({0, 3})})]


def test_nothing_is_read_where_nothing_was_compared() -> None:
    unknown = Outputs(unknown="HTTP 400")
    assert kept(unknown, unknown)["replicates"][1]["parity"] == {"unknown": "HTTP 400"}  # type: ignore[index]
    assert answers([kept(unknown, unknown)]) == []
    assert answers([kept(None, None)]) == []
    assert answers([kept(wide=unknown)]) == [Answers(round=0, baseline=BASELINE.digests, diverged={})]


def test_whether_outputs_are_compared_is_part_of_the_question_and_nothing_else_moves() -> None:
    spec = {"pool": "latency", "arms": [{"name": "baseline"}, {"name": "wide"}]}
    assert fingerprint(spec) != fingerprint({**spec, "gate": {"parity": {"samples": 4}}})
    assert fingerprint({**spec, "gate": {"parity": {"samples": 4}}}) != fingerprint(
        {**spec, "gate": {"parity": {"samples": 8}}}
    )
    assert "parity" not in PLAN.to_json()


def test_a_round_that_compares_is_asked_for_it_through_its_environment() -> None:
    assert RoundPlan.from_json(ASKED.to_json()) == ASKED
    assert RoundPlan.from_json(PLAN.to_json()).parity is None
