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
    os.utime(tmp_path / "out" / "arm" / "alive")  # late, but it lives
    assert not room.has_exited()
    before = time.monotonic()
    with pytest.raises(WrapperError, match="the container of arm has exited"):
        room.stop()
    assert time.monotonic() - before < 5


def test_a_container_that_is_not_up_yet_has_the_start_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ALIVE_SECONDS", 0.1)
    (tmp_path / "in").mkdir()
    with pytest.raises(WrapperError, match="1 s"):
        Control(tmp_path, "arm").wait_for_wrapper(1.0)


def test_the_last_words_of_a_server_are_its_reason(tmp_path: Path) -> None:
    """Of a capture: the real one ends with what its parent says of the signal."""
    log = (CAPTURES / "sglang_jax" / "refused_fp8.log").read_text()
    room = told(tmp_path)
    (tmp_path / "out" / "arm" / "log").write_text(log)
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
    for name in ("exit", "log", "clocks.1"):
        (tmp_path / "out" / "arm" / name).symlink_to(elsewhere)
    elsewhere.write_text("one 0")
    assert not room.has_exited()
    assert room.log() == room.last_words() == ""
    assert elsewhere.read_text() == "one 0"


def test_nobody_waits_at_a_pipe(tmp_path: Path) -> None:
    room = told(tmp_path)
    room.machine = dataclasses.replace(room.machine, driver="570.1")
    room.start(("server",))
    for name in ("exit", "log", "clocks.1"):
        os.mkfifo(tmp_path / "out" / "arm" / name)
    (tmp_path / "out" / "arm" / "alive").unlink()
    os.mkfifo(tmp_path / "out" / "arm" / "alive")
    before = time.monotonic()
    assert not room.has_exited()
    assert room.log() == room.last_words() == ""
    with pytest.raises(TimeoutError):
        room._await("clocks.1", 0.1, "none", TimeoutError)
    assert time.monotonic() - before < 5


def test_only_so_much_of_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "LONGEST_LOG", 1 << 20)
    room = told(tmp_path)
    with (tmp_path / "out" / "arm" / "log").open("wb") as log:
        log.truncate(1 << 34)  # it takes no room on a disk
        log.seek(0, os.SEEK_END)
        log.write(b"\nRuntimeError: CUDA error\n")
    with pytest.raises(ServerFailed, match="1 MiB"):
        room.log()
    assert room.last_words() == "RuntimeError: CUDA error"


def test_a_start_that_logs_without_end_is_not_read(tmp_path: Path) -> None:
    """Its last line would not be of the moment at which the server was ready."""
    room = told(tmp_path)
    file = tmp_path / "out" / "arm" / "log"
    file.write_text("[2026-11-26 22:38:04] Load weight begin.\r\n")
    assert room.start_log() == "[2026-11-26 22:38:04] Load weight begin.\r\n"
    with file.open("ab") as log:
        log.truncate(1 << 34)
    assert room.start_log() == ""


@pytest.mark.parametrize("forged", ["words", "", "0 and more", "-9"])
def test_what_a_server_says_of_its_own_end_only_ends_its_arm(tmp_path: Path, forged: str) -> None:
    room = told(tmp_path)
    room.start(("server",))
    (tmp_path / "out" / "arm" / "exit").write_text(f"{forged}\n")
    if forged:
        assert room.stop().exit_code in (None, 0)
    else:
        assert not room.has_exited()


def test_an_arm_waits_until_the_gpus_are_as_empty_as_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MEMORY_SECONDS", 0.3)
    room = told(tmp_path)
    for used, before in (("900", None), ("", 100), ("1124", 100)):
        (tmp_path / "out" / "arm" / "memory").write_text(used)
        room.wait_for_memory(before)
    (tmp_path / "out" / "arm" / "memory").write_text("70000")
    with pytest.raises(WrapperError, match="arm finds 70000 MiB of a GPU used, the first arm found 100"):
        room.wait_for_memory(100)


def test_what_the_machine_is_was_said_before_any_server_ran(tmp_path: Path) -> None:
    room = told(tmp_path)
    room.start(("server",))
    (tmp_path / "out" / "arm" / "gpus").write_text("GPU-other")
    assert room.machine.gpus == ("GPU-0",)
