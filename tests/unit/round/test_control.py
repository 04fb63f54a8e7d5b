"""The client notices that the server's container is gone, and why its server ended; and believes no server in it."""

import dataclasses
import os
import time
from pathlib import Path

import pytest
from tests.unit.round.pod import told

from paceline.pods.round import control
from paceline.pods.round.control import Control, WrapperError
from paceline.pods.round.steps import ServerFailed

CAPTURES = Path(__file__).parents[2] / "contract" / "captures"


def test_a_wrapper_that_stands_still_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ALIVE_SECONDS", 0.3)
    room = told(tmp_path)
    room.start(("server",))
    assert not room.has_exited()
    time.sleep(0.5)
    os.utime(tmp_path / "out" / "alive")  # late, but it lives
    assert not room.has_exited()
    before = time.monotonic()
    with pytest.raises(WrapperError, match="the server container has exited"):
        room.stop()
    assert time.monotonic() - before < 5


def test_a_container_that_is_not_up_yet_has_the_start_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ALIVE_SECONDS", 0.1)
    with pytest.raises(WrapperError, match="1 s"):
        Control(tmp_path).wait_for_wrapper(1.0)


def test_the_last_words_of_a_server_are_its_reason(tmp_path: Path) -> None:
    """Of a capture: the real one ends with what its parent says of the signal."""
    log = (CAPTURES / "sglang_jax" / "refused_fp8.log").read_text()
    room = told(tmp_path)
    (tmp_path / "out" / "log").write_text(log)
    assert log.rstrip().endswith("Received sigquit from a child process. It usually means the child failed.")
    assert room.last_words() == "ValueError: Unsupported kv_cache_dtype: fp8_e4m3."


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """What the client may write and a server may not."""
    weights = tmp_path / "models" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_text("two words, and a seal")
    return weights


def test_a_link_leads_nowhere(tmp_path: Path, elsewhere: Path) -> None:
    room = told(tmp_path)
    room.start(("server",))
    for name in ("exit.1", "log", "clocks.1"):
        (tmp_path / "out" / name).symlink_to(elsewhere)
    elsewhere.write_text("one 0")
    assert not room.has_exited()
    assert room.log() == room.last_words() == ""
    assert elsewhere.read_text() == "one 0"


def test_nobody_waits_at_a_pipe(tmp_path: Path) -> None:
    room = told(tmp_path)
    room.machine = dataclasses.replace(room.machine, driver="570.1")
    room.start(("server",))
    for name in ("exit.1", "log", "clocks.1"):
        os.mkfifo(tmp_path / "out" / name)
    (tmp_path / "out" / "alive").unlink()
    os.mkfifo(tmp_path / "out" / "alive")
    before = time.monotonic()
    assert not room.has_exited()
    assert room.log() == room.last_words() == ""
    with pytest.raises(TimeoutError):
        room._await("clocks.1", 0.1, "none", TimeoutError)
    assert time.monotonic() - before < 5


def test_only_so_much_of_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "LONGEST_LOG", 1 << 20)
    room = told(tmp_path)
    with (tmp_path / "out" / "log").open("wb") as log:
        log.truncate(1 << 34)  # it takes no room on a disk
        log.seek(0, os.SEEK_END)
        log.write(b"\nRuntimeError: CUDA error\n")
    with pytest.raises(ServerFailed, match="1 MiB"):
        room.log()
    assert room.last_words() == "RuntimeError: CUDA error"


def test_a_server_cannot_say_that_it_has_ended(tmp_path: Path) -> None:
    """It would be taken for the next one, which starts only when it is gone."""
    room = told(tmp_path)
    room.start(("server",))
    for forged in ("0", "0 stopped", "two 0", " 0"):
        (tmp_path / "out" / "exit.1").write_text(forged)
        assert not room.has_exited()
    (tmp_path / "out" / "exit.1").write_text("one 0")
    assert room.has_exited()
    assert room.stop().exit_code == 0


def test_what_the_machine_is_was_said_before_any_server_ran(tmp_path: Path) -> None:
    room = told(tmp_path)
    room.start(("server",))
    (tmp_path / "out" / "gpus").write_text("GPU-other")
    assert room.machine.gpus == ("GPU-0",)
