"""What a candidate's own server comes to is held against it, whether it ended by itself or had to be ended."""

from typing import Any

import pytest
from tests.support.in_status import measurements

from paceline.core import Gate, default_looks
from paceline.evidence.failures import Failure
from paceline.gate import decide

LOAD = "code@32"


def a_round(number: int, failure: Failure | None) -> dict[str, Any]:
    """The baseline lives; the candidate is 1.3 times as fast where nothing is wrong with it."""
    wide = {"arm": "wide", "error": failure.value.message, "reason": failure.name} if failure else {"arm": "wide"}
    speeds = {"baseline": 100 + number % 2 / 10, "wide": 130 - number % 3 / 10}
    points = [
        {"arm": arm, "workload": LOAD, "valid": not failure or arm == "baseline", "steadyThroughput": str(speed)}
        for arm, speed in speeds.items()
    ]
    return {"round": number, "try": 0, "replicates": [{"arm": "baseline"}, wide], "points": points, "error": ""}


@pytest.mark.parametrize("failure", [Failure.TimedOut, Failure.StartTimeout])
def test_a_server_that_hangs_in_every_other_round_is_not_promoted(failure: Failure) -> None:
    rounds = [a_round(number, failure if number % 2 else None) for number in range(9)]
    verdict = decide(
        Gate(decide_after_rounds=default_looks(2)), ("baseline", "wide"), {LOAD: 1.0}, measurements(rounds)
    )
    assert (verdict.outcome, verdict.arms["wide"].reason) == ("Reject", "Unreliable")
