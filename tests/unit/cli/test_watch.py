"""`kubectl paceline watch`: frames of `status`, in place on a terminal, one after another elsewhere."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.looked_at import looked_at
from tests.unit.cli.states import both_promoted, measuring_round_2_of_3
from tests.unit.cli.test_top import Server
from tests.unit.kube.test_transport import talking_to

from paceline.cli.live.deployment import ObservedDeployment
from paceline.cli.watch import differing

PLUGIN = Path(sys.executable).with_name("kubectl-paceline")


async def test_only_what_has_changed_is_written_again() -> None:
    measuring, promoted = looked_at(measuring_round_2_of_3()), looked_at(both_promoted())

    async def seen() -> AsyncIterator[ObservedDeployment]:
        for each in (measuring, measuring, promoted, promoted):
            yield each

    assert [each async for each in differing(seen())] == [measuring, promoted]


@pytest.mark.parametrize(("variable", "colours"), [("TERM", True), ("NO_COLOR", False)])
async def test_a_terminal_is_drawn_in_place_until_it_is_interrupted(
    tmp_path: Path, variable: str, colours: bool
) -> None:
    """In colours, unless NO_COLOR forbids them."""
    async with talking_to(Server().answer, tmp_path):
        drawn, code = await asyncio.to_thread(watched, tmp_path / "kubeconfig", variable)
    assert "models/qwen3-coder-next" in drawn
    assert "narrow 1.03x (emulated)" in drawn
    assert ("\x1b[32m" in drawn) == colours
    assert drawn.count("models/qwen3-coder-next") > 1
    assert code == 130


def watched(kubeconfig: Path, variable: str) -> tuple[str, int]:
    """What a terminal is sent until it has seen two frames, and the exit code after Ctrl-C."""
    mine, theirs = pty.openpty()
    words = ["watch", "qwen3-coder-next", "-n", "models", "--kubeconfig", str(kubeconfig)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "60", variable: "xterm-256color"}
    watching = subprocess.Popen(
        [PLUGIN, *words], stdout=theirs, stderr=subprocess.PIPE, env=environment, preexec_fn=heeds_interrupts
    )
    os.close(theirs)
    drawn = ""
    try:
        while drawn.count("models/qwen3-coder-next") < 2:
            drawn += os.read(mine, 65536).decode(errors="replace")
        watching.send_signal(signal.SIGINT)
        code = watching.wait(30)
    finally:
        watching.kill()
        watching.communicate()
    os.close(mine)
    return drawn, code


def heeds_interrupts() -> None:
    """A shell starts what runs in its background with interrupts ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
