"""A round of an older SGLang: other pages, and fewer numbers."""

import dataclasses
from pathlib import Path

import pytest
from tests.unit.round.pod import CODE_1, Start
from tests.unit.round.test_round import emulated

from paceline.engines import ENGINES


@pytest.mark.parametrize(
    ("version", "unseen"), [("0.5.6", ("verify_calls",)), ("0.4.5", ("verify_calls", "retractions"))]
)
def test_what_an_older_release_cannot_show_is_named_and_not_taken_for_nothing(
    start: Start, models: Path, port: int, version: str, unseen: tuple[str, ...]
) -> None:
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    chain = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4")
    arms = (
        emulated(models, port, "baseline", speculative_algorithm=None),
        emulated(models, port, "chain", *head, *chain, speculative_algorithm="EAGLE3", speculative_num_steps=3),
    )
    probe = ENGINES["SGLang"].probe(version)
    outcome = start(
        arms,
        CODE_1,
        change=lambda plan: dataclasses.replace(plan, engine_version=version, unseen=probe.unseen),
        PACELINE_EMULATE_VERSION=version,
    ).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert probe.unseen == (*unseen, "accepted_at")
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
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    chain = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4")
    arms = (
        emulated(models, port, "baseline", speculative_algorithm=None),
        emulated(models, port, "chain", *head, *chain, "--stream-interval", "8", speculative_algorithm="EAGLE3"),
    )
    probe = ENGINES["SGLang"].probe(version)
    outcome = start(
        arms,
        CODE_1,
        change=lambda plan: dataclasses.replace(plan, engine_version=version, unseen=probe.unseen),
        PACELINE_EMULATE_VERSION=version,
    ).finish()
    assert outcome.judged["chain", "code@1"].why == "stream_interval is 8, and 1 on the baseline"
    assert outcome.judged["baseline", "code@1"].valid
