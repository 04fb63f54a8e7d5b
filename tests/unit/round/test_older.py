"""A round of an older SGLang: other pages, and fewer numbers."""

import dataclasses
from pathlib import Path

import pytest
from tests.support.rounds import with_arms
from tests.unit.round.pod import CODE_1, Arms, Outcome, Start
from tests.unit.round.test_round import emulated

from paceline.engines import ENGINES

SGLANG = ENGINES["SGLang"]
PINNED = ("--mem-fraction-static", "0.85")
CHAIN = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4")


def pair(models: Path, port: int, *shared: str, own: tuple[str, ...] = ()) -> Arms:
    """The baseline and a chain, both with the shared arguments."""
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    base = emulated(models, port, "baseline", *shared, speculative_algorithm=None)
    chain = emulated(models, port, "chain", *shared, *head, *CHAIN, *own, speculative_algorithm="EAGLE3")
    return dataclasses.replace(base, candidate=False), chain


def measured(start: Start, arms: Arms, version: str) -> Outcome:
    probe = SGLANG.probe(version)
    return start(
        arms,
        CODE_1,
        change=lambda plan: with_arms(plan, engine_version=version, unseen=probe.unseen, compared=SGLANG.compared),
        PACELINE_EMULATE_VERSION=version,
    ).finish()


@pytest.mark.parametrize(
    ("version", "unseen"), [("0.5.6", ("verify_calls",)), ("0.4.5", ("verify_calls", "retractions"))]
)
def test_what_an_older_release_cannot_show_is_named_and_not_taken_for_nothing(
    start: Start, models: Path, port: int, version: str, unseen: tuple[str, ...]
) -> None:
    outcome = measured(start, pair(models, port, *PINNED), version)
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert SGLANG.probe(version).unseen == (*unseen, "accepted_at")
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    assert outcome.result.engine_version == f"{version}+emulated"
    (point,) = outcome.result.replicates[1].points
    assert point.accept_length is not None
    assert 1.5 < point.accept_length < 4
    assert point.verify_calls is None
    assert point.retractions == (None if "retractions" in unseen else 0)


@pytest.mark.parametrize("version", ["0.4.5", "0.5.6", "0.5.23"])
def test_a_server_with_another_argument_is_no_evidence_and_the_round_says_which(
    start: Start, models: Path, port: int, version: str
) -> None:
    """Whatever argument it is: the desk would have refused this one."""
    outcome = measured(start, pair(models, port, *PINNED, own=("--stream-interval", "8")), version)
    assert outcome.judged["chain", "code@1"].why.startswith("stream_interval is 8")
    assert outcome.judged["baseline", "code@1"].valid


def test_a_share_of_the_memory_that_nobody_pinned_is_no_evidence_on_0_5_6(
    start: Start, models: Path, port: int
) -> None:
    """It takes 2 GiB more for itself where it speculates (server_args.py:846-853): `memory-moves` asks for the pin."""
    outcome = measured(start, pair(models, port), "0.5.6")
    assert outcome.judged["chain", "code@1"].why.startswith("mem_fraction_static is 0.886")
    assert outcome.judged["baseline", "code@1"].valid
