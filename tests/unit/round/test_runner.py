"""What a room says of what went wrong in it."""

import dataclasses
import socket
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.round.test_steps import CODE, PLAN, WIDE

from paceline.evidence import Failure
from paceline.pods.round import server
from paceline.pods.round.keys import NO_KEYS
from paceline.pods.round.runner import Runner
from paceline.pods.round.server import PortTakenError
from paceline.pods.round.steps import SendLoad, ServerFailed, Start


def test_nobody_else_is_measured_in_a_servers_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is started, and no arm pays for it: the round is tried again."""
    monkeypatch.setattr(server, "PORT_SECONDS", 0.0)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        room = Runner(dataclasses.replace(PLAN, port=port), tmp_path, NO_KEYS, tmp_path)
        with pytest.raises(PortTakenError, match=f"127.0.0.1:{port}"):
            room.perform(Start(WIDE))


def test_a_workload_that_takes_too_long_says_so(tmp_path: Path) -> None:
    """Not even the client's interpreter is up after ten milliseconds."""
    room = Runner(dataclasses.replace(PLAN, workload_timeouts={"code@1": 0.01}), tmp_path, NO_KEYS, tmp_path)
    with pytest.raises(ServerFailed) as failed:
        room.perform(SendLoad(WIDE, CODE))
    assert (str(failed.value), failed.value.failure) == ("code@1: timed out after 0 s", Failure.TimedOut)
