"""A download ends with the `paceline measure` that has begun it: weights are hundreds of gigabytes, and whoever gives
the command again would share the disk and the line with it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "try.yaml"
PATIENCE = 30.0


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def heard() -> None:
    """Ctrl-C is; a shell's job in the background, such as a test run, has it ignored, and hands that down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_download_ends_with_us(tmp_path: Path, way: signal.Signals) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:  # a hub that never answers
        environ = os.environ | {
            "HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "XDG_CACHE_HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
        }
        program = [sys.executable, "-m", "paceline.cli", "measure", str(EXAMPLE), "--engine-command", "/bin/true"]
        measure = subprocess.Popen(
            [*program, "-o", str(tmp_path / "run.yaml")], env=environ, stderr=subprocess.DEVNULL, preexec_fn=heard
        )
        with closing(silent.accept()[0]):
            (download,) = children(measure.pid)
            measure.send_signal(way)
            assert measure.wait(PATIENCE) in (-way, 130)
            until(lambda: not runs(download))
