"""What a run measures, what it is asked, and what two runs have in common."""

import hashlib
from typing import Any

import pytest

from paceline.core import canonical
from paceline.evidence import fingerprint, narrowed, question, same_arms, same_server, surroundings
from paceline.evidence.changes import changes

LIMIT = {"metric": "retractions", "max": 3}
SPEC: dict[str, Any] = {
    "pool": "latency",
    "target": {"source": "hf://a/target"},
    "engine": {"type": "SGLang", "image": "a"},
    "arms": [{"name": "baseline"}, {"name": "wide", "tree": {"topK": 4}}, {"name": "narrow", "tree": {"topK": 1}}],
    "workloads": [{"name": "code", "concurrency": 1, "weight": 1}],
    "gate": {"minImprovement": "0.05", "decideAfterRounds": [3, 6, 9]},
}


@pytest.mark.parametrize(
    ("change", "measured", "asked"),
    [
        ({"podLabels": {"a": "b"}}, True, True),
        ({"gate": {**SPEC["gate"], "roundsOf": "another"}}, True, True),
        ({"gate": {**SPEC["gate"], "minImprovement": "0.04"}}, True, False),
        ({"gate": {**SPEC["gate"], "decideAfterRounds": [4, 8]}}, True, False),
        ({"gate": {**SPEC["gate"], "limits": [{"metric": "meanTTFT", "maxIncrease": "0.1"}]}}, True, False),
        ({"budget": {"gpuHours": "3"}}, True, False),
        ({"workloads": [{"name": "code", "concurrency": 1, "weight": 5}]}, True, False),
        # Held against a point when it is measured: one with more is no evidence, and not kept as such.
        ({"gate": {**SPEC["gate"], "limits": [LIMIT]}}, False, False),
        ({"gate": {**SPEC["gate"], "limits": [{**LIMIT, "max": 0}]}}, True, False),
        ({"engine": {"type": "SGLang", "image": "b"}}, False, False),
        ({"arms": SPEC["arms"][:2]}, False, False),
        ({"workloads": [{"name": "code", "concurrency": 2, "weight": 1}]}, False, False),
        # Its client counts by it: rounds without have no goodput, and rounds with another have another.
        ({"workloads": [{"name": "code", "concurrency": 1, "weight": 1, "slo": {"ttft": "500ms"}}]}, False, False),
        ({"workloads": [{"name": "code", "concurrency": 1, "weight": 1, "slo": None}]}, True, True),
        # Rounds of fewer requests are evidence of the same.
        ({"workloads": [{**SPEC["workloads"][0], "minRequests": 16}]}, True, True),
        ({"gate": {**SPEC["gate"], "parity": {"samples": 4}}}, False, False),
        ({"timeouts": {"start": "5m"}}, False, False),
    ],
)
def test_the_fingerprint_is_of_what_is_measured_and_the_question_of_the_rule_too(
    change: dict[str, Any], measured: bool, asked: bool
) -> None:
    other = {**SPEC, **change}
    assert (fingerprint(other) == fingerprint(SPEC)) is measured
    assert (question(other) == question(SPEC)) is asked


def test_a_field_that_nobody_uses_moves_nothing() -> None:
    later = {**SPEC, "new": {"inner": []}, "newer": None, "empty": ""}
    assert (fingerprint(later), question(later)) == (fingerprint(SPEC), question(SPEC))
    assert fingerprint({**SPEC, "zero": 0}) != fingerprint(SPEC)


def test_a_price_is_in_no_hash() -> None:
    priced = {**SPEC, "accelerator": {**SPEC.get("accelerator", {}), "pricePerHour": "2.5"}}
    assert (fingerprint(priced), question(priced)) == (fingerprint(SPEC), question(SPEC))
    assert surroundings(priced) == surroundings(SPEC)
    assert same_server(priced, SPEC)
    assert list(changes(SPEC, priced)) == []


def test_the_incumbent_is_in_no_hash() -> None:
    """After a roll-out, and after an edit was taken back, the finished run answers what is asked then."""
    looks = {"gate": {**SPEC["gate"], "decideAfterRounds": [4, 8]}}
    beside = {**SPEC, **looks, "arms": [*SPEC["arms"], {"name": "incumbent", "engine": {"image": "b"}}]}
    assert (fingerprint(beside), question(beside)) == (fingerprint(SPEC), question(SPEC))


def test_a_candidate_was_measured_alike_whoever_else_was() -> None:
    fewer = {**SPEC, "arms": SPEC["arms"][:2]}
    assert surroundings(fewer) == surroundings(SPEC)
    assert same_arms(SPEC, fewer) == ("wide",)
    assert same_arms({**SPEC, "arms": [SPEC["arms"][0], {"name": "wide", "tree": {"topK": 2}}]}, fewer) == ()
    assert surroundings({**SPEC, "gate": {**SPEC["gate"], "parity": {"samples": 4}}}) != surroundings(SPEC)


@pytest.mark.parametrize(
    ("change", "same"),
    [({"gate": {}, "arms": [], "workloads": []}, True), ({"engine": {"image": "b"}}, False), ({"target": {}}, False)],
)
def test_a_server_is_what_all_arms_share(change: dict[str, Any], same: bool) -> None:
    assert same_server({**SPEC, **change}, SPEC) is same


@pytest.mark.parametrize(("looks", "narrow"), [([3, 6, 9], [4, 6, 8]), ([3, 5], [3, 5])])
def test_looks_that_nobody_chose_are_those_of_so_many_arms(looks: list[int], narrow: list[int]) -> None:
    spec = {**SPEC, "gate": {**SPEC["gate"], "decideAfterRounds": looks}}
    found = narrowed(spec, {"wide"})
    assert [arm["name"] for arm in found["arms"]] == ["baseline", "wide"]
    assert list(found["gate"]["decideAfterRounds"]) == narrow


def test_the_form_that_hashes_are_taken_of_holds_still() -> None:
    """Text that is not ASCII: a fingerprint has it as UTF-8, a revision (and an arm's arguments) escaped."""
    assert question({"image": "é"}) == hashlib.sha256('{"image":"é"}'.encode()).hexdigest()[:10]
    assert canonical.digest({"image": "é"}) == hashlib.sha256(rb'{"image":"\u00e9"}').hexdigest()[:10]
