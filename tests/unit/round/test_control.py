"""The client notices that the server's container is gone."""

import os
import time
from pathlib import Path

import pytest

from paceline.pods.round import control
from paceline.pods.round.control import Control, WrapperError


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
