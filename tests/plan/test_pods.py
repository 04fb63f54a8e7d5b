"""What is said of a pod with containers of the user's own beside the server (engine.podTemplate)."""

from pathlib import Path
from typing import Any

import pytest

from paceline.api import Reason
from paceline.plan.trouble import Trouble, exit_text, last_line, trouble

CAPTURES = Path(__file__).parents[1] / "contract" / "captures"


def pod(restart: str = "Always", **statuses: list[dict[str, Any]]) -> dict[str, Any]:
    return {"spec": {"restartPolicy": restart}, "status": statuses}


def ended(name: str, code: int, log: str = "") -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code, "message": log}}}


def test_an_init_container_that_fails_is_reported() -> None:
    starts = pod(initContainerStatuses=[ended("warm", 1, "no such bucket")])
    assert trouble([starts]) == Trouble(message="the warm exited with 1: no such bucket")


def test_an_init_container_that_ended_well_is_no_trouble() -> None:
    assert trouble([pod(initContainerStatuses=[ended("warm", 0)])]) is None


def test_a_server_that_ended_well_is_in_trouble_all_the_same() -> None:
    """As PID 1 a crashed SGLang exits with 0; in a round it may end."""
    assert trouble([pod(containerStatuses=[ended("server", 0)])]) == Trouble(message="the server exited with 0")
    assert trouble([pod("Never", containerStatuses=[ended("server", 0)])]) is None


def test_an_image_of_the_users_that_cannot_be_pulled_is_reported() -> None:
    waits = {"name": "warm", "state": {"waiting": {"reason": "ErrImagePull", "message": "warm:1: not found"}}}
    assert trouble([pod(initContainerStatuses=[waits])]) == Trouble(
        message="ErrImagePull: warm:1: not found", reason=Reason.CannotStart
    )


@pytest.mark.parametrize(
    ("capture", "code", "reason"),
    [
        ("sglang_jax/refused_fp8.log", 137, "ValueError: Unsupported kv_cache_dtype: fp8_e4m3."),
        ("sglang_jax/eagle3_page1_dies.log", 137, "ValueError: token_to_kv_pool_allocator memory leak detected!"),
        ("vllm/engine_killed.log", 1, "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup"),
    ],
)
def test_the_reason_of_a_crash_is_reported_and_not_the_last_line(capture: str, code: int, reason: str) -> None:
    """The kubelet hands over the last 2048 bytes of its log."""
    log = (CAPTURES / capture).read_bytes()[-2048:].decode(errors="replace")
    assert trouble([pod(containerStatuses=[ended("server", code, log)])]) == Trouble(
        message=f"the server exited with {code}: {reason}"
    )


def test_what_a_terminal_would_obey_is_in_no_condition() -> None:
    """Whatever a server prints ends in a status that people read with kubectl."""
    state = {"exitCode": 1, "message": "RuntimeError: \x1b]0;owned\x07\x1b[2Jgone\u202e\n"}
    assert exit_text("server", state) == "the server exited with 1: RuntimeError: ]0;owned[2Jgone"
    assert last_line("one\n\x1b[31mtwo\x07\n\x1b\n") == "[31mtwo"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("connection refused", "connection refused"),
        ("Back-off pulling image: connection refused", "…connection refused"),
        ("Back-off pulling: connection refused", "…connection refused"),
        ("x" * 40, "…" + "x" * 23),
    ],
)
def test_a_line_that_is_too_long_begins_at_a_word(line: str, shown: str) -> None:
    assert last_line(line, limit=24) == shown
