"""The client notices that the server's container is gone, and why its server ended."""

import os
import time
from pathlib import Path

import pytest

from paceline.pods.round import control
from paceline.pods.round.control import Control, WrapperError

CAPTURES = Path(__file__).parents[2] / "contract" / "captures"


def test_a_wrapper_that_stands_still_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ALIVE_SECONDS", 0.3)
    room = Control(tmp_path)
    (tmp_path / "alive").touch()
    assert not room.has_exited()
    time.sleep(0.5)
    os.utime(tmp_path / "alive")  # late, but it lives
    assert not room.has_exited()
    before = time.monotonic()
    with pytest.raises(WrapperError, match="the server container has ended"):
        room.stop()
    assert time.monotonic() - before < 5


def test_a_container_that_is_not_up_yet_has_the_start_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ALIVE_SECONDS", 0.1)
    with pytest.raises(WrapperError, match="the server's container did not start in 1 s"):
        Control(tmp_path).wait_for_wrapper(1.0)


def test_the_last_words_of_a_server_are_its_reason(tmp_path: Path) -> None:
    """Of a capture: the real one ends with what its parent says of the signal."""
    log = (CAPTURES / "sglang_jax" / "refused_fp8.log").read_text()
    (tmp_path / "log").write_text(log)
    assert log.rstrip().endswith("Received sigquit from a child process. It usually means the child failed.")
    assert Control(tmp_path).last_words() == "ValueError: Unsupported kv_cache_dtype: fp8_e4m3."
