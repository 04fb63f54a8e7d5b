"""An acceptance length that is known beforehand, because the real server was told it: that is what is reported."""

import pytest
from tests.sglang.real import Deployed


def test_the_real_server_was_measured(forced_length: Deployed) -> None:
    assert forced_length.run["status"]["engineVersion"] == "0.5.23"
    assert not forced_length.run["status"].get("emulated")


def test_every_point_is_evidence(forced_length: Deployed) -> None:
    assert [point["why"] for arm in ("baseline", "wide") for point in forced_length.points(arm)] == [""] * 4


def test_the_forced_length_is_what_the_result_says(forced_length: Deployed) -> None:
    (result,) = [each for each in forced_length.run["status"]["results"] if each["workload"] == "chat@1"]
    assert float(result["acceptLength"]) == pytest.approx(2.5, abs=0.25)


def test_the_length_agrees_with_what_the_clients_received(forced_length: Deployed) -> None:
    """Every verify call yields as many tokens as the length says; the first token of a request needs none."""
    for point in forced_length.points("wide"):
        tokens = point["outputTokens"] - point["completed"]
        assert tokens / point["verifyCalls"] == pytest.approx(float(point["acceptLength"]), rel=0.1)


def test_the_baseline_speculates_about_nothing(forced_length: Deployed) -> None:
    assert not any("acceptLength" in point for point in forced_length.points("baseline"))
