"""The operator's own process, at an API server on loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.apiserver import _free_ports


@contextmanager
def an_operator(kubeconfig: Path, log: Path, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Its process; `more` is environment, as the chart sets it."""
    metrics, probe = _free_ports(2)
    env = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PACELINE_METRICS_PORT": str(metrics),
        "PACELINE_PROBE_PORT": str(probe),
        "POD_NAME": "operator",
        "POD_NAMESPACE": "default",
        **more,
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline.cli", "operator"],
            env=env,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)
