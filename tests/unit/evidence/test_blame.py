"""What a candidate's own server comes to is held against it, whether it ended by itself or had to be ended."""

from typing import Any

import pytest
from tests.support.in_status import measurements

from paceline.core import Gate, default_looks
from paceline.evidence.failures import of_server
from paceline.gate import decide

LOAD = "code@32"


def a_round(number: int, error: str) -> dict[str, Any]:
    """The baseline lives; the candidate is 1.3 times as fast where nothing is wrong with it."""
    why = of_server(None, error)
    wide = {"arm": "wide", "error": error, "reason": why.name if why else ""}
    speeds = {"baseline": 100 + number % 2 / 10, "wide": 130 - number % 3 / 10}
    points = [
        {"arm": arm, "workload": LOAD, "valid": not error or arm == "baseline", "steadyThroughput": str(speed)}
        for arm, speed in speeds.items()
    ]
    return {"round": number, "try": 0, "replicates": [{"arm": "baseline"}, wide], "points": points, "error": ""}


@pytest.mark.parametrize("error", [f"{LOAD}: timed out after 6600 s", "not ready after 1800 s"])
def test_a_server_that_hangs_in_every_other_round_is_not_promoted(error: str) -> None:
    rounds = [a_round(number, error if number % 2 else "") for number in range(9)]
    verdict = decide(
        Gate(decide_after_rounds=default_looks(2)), ("baseline", "wide"), {LOAD: 1.0}, measurements(rounds)
    )
    assert (verdict.outcome, verdict.arms["wide"].reason) == ("Reject", "Unreliable")
