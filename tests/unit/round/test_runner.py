"""What a room says of what went wrong in it."""

import dataclasses
from pathlib import Path

import pytest
from tests.unit.round.test_steps import CODE, PLAN, WIDE

from paceline.evidence import Failure
from paceline.pods.round.control import Control
from paceline.pods.round.runner import Runner
from paceline.pods.round.steps import Load, ServerFailed


def test_a_workload_that_takes_too_long_says_so(tmp_path: Path) -> None:
    """Not even the benchmark client's interpreter is up after ten milliseconds."""
    room = Runner(dataclasses.replace(PLAN, workload_timeouts={"code@1": 0.01}), Control(tmp_path), tmp_path)
    with pytest.raises(ServerFailed) as failed:
        room.perform(Load(WIDE, CODE))
    assert (str(failed.value), failed.value.failure) == ("code@1: timed out after 0 s", Failure.TimedOut)
