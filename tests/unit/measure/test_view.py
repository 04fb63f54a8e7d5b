"""What a person sees of a run that is being measured here."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import runs
from tests.support.messages import Says
from tests.support.rounds import PLAN

from paceline.cli.live.measuring import drawn, intervals, intervals_so_far, verdict_lines
from paceline.cli.live.screen import plain_text
from paceline.core import Bounds
from paceline.measure.rounds import Moment

NOW = datetime(2026, 11, 20, 10, 20, tzinfo=UTC)
SAID = ("baseline: starting", "baseline: ready after 13.2 s", "baseline code@1: 171.30 tok/s")


def moment(rounds: int) -> Moment:
    """So many rounds measured, and the next one under way since half a minute."""
    run = runs.latency()
    progress = {"step": "Measuring", "job": "run-2-0", "round": rounds, "secondsPerRound": 190, "message": "round"}
    status = {"progress": progress, "emulated": True}
    plan = replace(PLAN, round=rounds)
    began = datetime(2026, 11, 20, 10, 19, 30, tzinfo=UTC)
    return Moment(run={**run, "status": status, "rounds": run["rounds"][:rounds]}, plan=plan, began=began, said=SAID)


def test_the_round_under_way_the_looks_and_the_time_left() -> None:
    seen = plain_text(drawn(moment(2), (), NOW, emulated=True), width=160).splitlines()
    assert seen[0] == "qwen3-coder-next-latency-5f0c9a1b2d-1 (emulated)"
    assert "round 3 of 4, 6 or 8" in seen[1]
    assert seen[1].endswith("baseline code@1: 171.30 tok/s, 30 s")
    assert "about 5 min to the look after round 4" in seen[2]
    assert "■■◧□|□□|□□|" in seen[3]


def bounds(run: dict[str, Any]) -> Bounds:
    (wide,) = intervals_so_far(run)
    assert wide.mean
    return wide.mean.bounds


def test_the_interval_narrows_with_every_round() -> None:
    widths = [bounds(moment(rounds).run) for rounds in (2, 3)]
    assert [bounds.upper - bounds.lower for bounds in widths] == sorted(
        (bounds.upper - bounds.lower for bounds in widths), reverse=True
    )
    assert intervals_so_far(moment(1).run) == ()


def test_a_candidates_bounds_are_on_a_ruler_with_the_baselines_speed(says: Says) -> None:
    line, asked, provisional = intervals(intervals_so_far(moment(2).run), 1.05)
    assert line.index("┊") < line.index("├") < line.index("●") < line.index("┤")
    assert re.search(r"1\.\d\d to 1\.\d\d so far$", line)
    assert " 1.05 " in asked
    says(provisional)
    assert list(intervals((), 1.05)) == []


def test_it_ends_with_the_table_and_a_sentence() -> None:
    shown = plain_text(verdict_lines(runs.latency()), width=120)
    assert "Asked for" in shown
    assert "all, by weight" in shown
    assert shown.splitlines()[-1].startswith("Emulated: Promote wide: 1.36x")


def test_a_narrow_terminal_cuts_no_number_off() -> None:
    shown = plain_text(verdict_lines(runs.latency()), width=40)
    assert "…" not in shown


@pytest.mark.parametrize(("terminal", "draws"), [("xterm", "True"), ("dumb", "False")])
def test_where_nothing_can_be_drawn_over_lines_are_printed(terminal: str, draws: str) -> None:
    program = "from paceline.cli.live.screen import draws_in_place; print(draws_in_place())"
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=os.environ | {"TERM": terminal}, check=True)
    os.close(theirs)
    assert os.read(ours, 100).decode().strip() == draws
    os.close(ours)
