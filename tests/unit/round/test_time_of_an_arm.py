"""What the time of one arm's server goes into, as the protocol notes it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.round.test_steps import CODE, PLAN, Server, drive

from paceline.evidence.result import Parts
from paceline.pods.round.steps import Instruction, SendLoad, ServerEnd, ServerFailed, StartLog


def test_what_the_time_of_an_arm_went_into_is_noted() -> None:
    """Of 13.2 s to start the log shows 2.3 and 2.28, and that weights were loaded in its last 6; each load took 2.3 s
    by the client, and its warm-up two windows of as much."""
    _, ran = drive(Server(), plan=replace(PLAN, workloads=(CODE, replace(CODE, concurrency=2))))
    assert ran.replicate.seconds == Parts(
        imports=pytest.approx(7.2), weights=2.3, graphs=2.28, warm_up=pytest.approx(9.2), loads=4.6, end=5.1
    )


def test_what_is_not_known_of_an_arms_time_is_absent() -> None:
    """A start whose log is too long to read, and a server that ended by itself during its first load."""

    def answer(step: Instruction) -> Any:
        if isinstance(step, SendLoad) and not step.window:
            raise ServerFailed("the server exited")
        return "" if isinstance(step, StartLog) else Server(ended=ServerEnd(1, "it ended"))(step)

    _, ran = drive(answer)
    assert ran.replicate.seconds == Parts(warm_up=4.6)
