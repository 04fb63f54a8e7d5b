"""What a room says of what went wrong in it."""

import dataclasses
import socket
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.messages import Says
from tests.unit.round.test_steps import CODE, PLAN, WIDE

from paceline.evidence import ArmCommand, Failure, Replicate
from paceline.pods.round import server
from paceline.pods.round.control import Control, MachineReport, WrapperError
from paceline.pods.round.keys import NO_KEYS
from paceline.pods.round.runner import Runner
from paceline.pods.round.server import PortTakenError
from paceline.pods.round.steps import ArmResult, ReadClocks, SendLoad, ServerFailed, Start


def test_nobody_else_is_measured_in_a_servers_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is started, and no arm pays for it: the round is tried again."""
    monkeypatch.setattr(server, "PORT_SECONDS", 0.0)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        room = Runner(PLAN, tmp_path, NO_KEYS, tmp_path)
        with pytest.raises(PortTakenError, match=f"127.0.0.1:{port}"):
            room.perform(Start(dataclasses.replace(WIDE, port=port)))


def test_a_workload_that_takes_too_long_says_so(tmp_path: Path) -> None:
    """Not even the client's interpreter is up after ten milliseconds."""
    room = Runner(dataclasses.replace(PLAN, workload_timeouts={"code@1": 0.01}), tmp_path, NO_KEYS, tmp_path)
    with pytest.raises(ServerFailed) as failed:
        room.perform(SendLoad(WIDE, CODE))
    assert (str(failed.value), failed.value.failure) == ("code@1: timed out after 0 s", Failure.TimedOut)


UNCOMPARED = "devices were not compared: an arm's container does not name its GPUs"


@pytest.mark.parametrize(
    ("first", "second", "claimed", "notes"),
    [
        (("GPU-0", "GPU-1"), ("GPU-1", "GPU-0"), False, []),
        (("GPU-0",), (), False, [UNCOMPARED]),
        ((), (), False, [UNCOMPARED]),
        ((), (), True, []),
    ],
)
def test_every_arm_has_the_devices_of_the_first(
    first: tuple[str, ...], second: tuple[str, ...], claimed: bool, notes: list[str], tmp_path: Path
) -> None:
    """Of a pod's claim every container has the same, whether or not it can name them."""
    room = Runner(dataclasses.replace(PLAN, claimed=claimed), tmp_path, NO_KEYS, tmp_path)
    for gpus in (first, second):
        room.control = Control(tmp_path, WIDE.name, machine=MachineReport(gpus=gpus))
        room.check_devices()
    assert room.notes == notes


def test_an_arm_with_other_devices_ends_the_round(tmp_path: Path) -> None:
    room = Runner(PLAN, tmp_path, NO_KEYS, tmp_path)
    room.machine = MachineReport(gpus=("GPU-0",))
    room.control = Control(tmp_path, WIDE.name, machine=MachineReport(gpus=("GPU-1",)))
    with pytest.raises(WrapperError, match="wide was given the GPUs GPU-1, the first arm GPU-0"):
        room.check_devices()


def test_kernels_that_an_arm_compiled_are_noted_with_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """Thirty before it was measured, and two that no warm-up had needed."""
    ctl, out = tmp_path / "in" / "wide", tmp_path / "out" / "wide"
    ctl.mkdir(parents=True)
    out.mkdir(parents=True)
    for name, text in (("ready", "1"), ("driver", "580.159.04"), ("kernels", "212")):
        (out / name).write_text(text)
    room = Runner(PLAN, tmp_path, NO_KEYS, tmp_path)

    def protocol(arm: ArmCommand) -> ArmResult:
        for look, (window, files) in enumerate(((2, 242), (0, 244), (2, 244), (0, 240)), 1):
            (out / f"clocks.{look}").write_text("")
            (out / "kernels").write_text(str(files))
            room.sent = SendLoad(arm, CODE, window)
            room.perform(ReadClocks())
        return ArmResult(Replicate(arm=arm.name))

    monkeypatch.setattr(Runner, "protocol", lambda _, arm: protocol(arm))
    room.drive(WIDE)
    says(*room.notes[1:])
