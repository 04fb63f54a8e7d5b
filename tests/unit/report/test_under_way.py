"""What a report says of a run between two looks: its estimates, as provisional."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says
from tests.support.reports import said
from tests.support.runs import latency

from paceline.api.round import with_rounds
from paceline.report import FORMATS, build_report
from paceline.report.model import Shown

H200 = Path(__file__).parents[3] / "dev" / "gpu" / "h200-2026-11-26" / "run.yaml.gz"


def on_the_h200() -> dict[str, Any]:
    """Two rounds of a real engine on a GPU; the first look is after the third."""
    run, *rounds = yaml.safe_load_all(gzip.decompress(H200.read_bytes()))
    return with_rounds(run, rounds)


def after(rounds: int) -> dict[str, Any]:
    run = latency()
    return run | {"status": {"progress": {"round": rounds}}, "rounds": run["rounds"][:rounds]}


def test_two_rounds_of_a_gpu_have_provisional_estimates_and_no_error(says: Says) -> None:
    run = said(on_the_h200())
    assert [one.outcome for one in run.candidates] == ["provisional"] * 2
    assert "1.84x (0.45–7.58)" in run.found
    says(run.sentence, *(one.reason for one in run.candidates))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_them(form: str) -> None:
    text = FORMATS[form](build_report([on_the_h200()]))
    assert said(on_the_h200()).candidates[0].reason in text
    assert "TooFewRounds" not in text


def test_the_page_draws_them_and_calls_nothing_shown() -> None:
    text = FORMATS["html"](build_report([on_the_h200()]))
    assert "Nothing has been compared yet." not in text
    assert "one@1: 2.68x, 1.45–4.96" in text
    assert {effect.shown for one in said(on_the_h200()).candidates for effect in one.effects} == {Shown.OPEN}


def test_one_round_has_no_estimate_and_is_no_error(says: Says) -> None:
    (wide,) = said(after(1)).candidates
    assert (wide.outcome, wide.effects) == ("undecided", ())
    says(wide.reason)


def test_a_lost_round_is_told_beside_the_estimate(says: Says) -> None:
    run = after(3)
    run["rounds"][1]["points"][-1] |= {"valid": False, "why": "too few requests"}
    (wide,) = said(run).candidates
    assert "1 of 3" in wide.reason
    says(wide.reason)


def test_a_run_that_ended_before_its_first_look_has_none() -> None:
    ended = on_the_h200()
    ended["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "Superseded", "message": "it has"}]
    run = said(ended)
    assert (run.outcome, [one.outcome for one in run.candidates]) == ("Ended", ["error", "error"])


def test_a_round_that_measured_something_else_is_in_no_report() -> None:
    """Anybody may apply a round with the label of a run; its verdict counts those of its own fingerprint."""
    run, *rounds = yaml.safe_load_all(gzip.decompress(H200.read_bytes()))
    stranger = {**rounds[0], "spec": {**rounds[0]["spec"], "round": 7, "fingerprint": "0123456789"}}
    assert with_rounds(run, [*rounds, stranger]) == with_rounds(run, rounds)
    assert len(with_rounds(run, rounds)["rounds"]) == 2
