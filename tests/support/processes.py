"""Processes in pods, as the machine sees them: it shares its processes with the nodes."""

import os
import signal
import time
from pathlib import Path

from tests.support.containers import status_of
from tests.support.kubernetes import OPERATOR, Manifest, Namespace

home = Namespace(OPERATOR)


class Operator:
    """The installed one, its process that is."""

    def freeze(self) -> None:
        """It sees nothing and does nothing, and the cluster goes on."""
        os.kill(self._process(), signal.SIGSTOP)

    def kill(self) -> None:
        """At once, frozen or not; the kubelet starts it again. Returns when it is gone."""
        kill(self._process())

    def replace(self) -> None:
        for pod in self._pods():
            home.kubectl("delete", "pod", pod["metadata"]["name"], "--ignore-not-found")
        home.kubectl("rollout", "status", "deployment/paceline", "--timeout", "60s")

    def _process(self) -> int:
        pods = home.wait("the operator to run", lambda: [pod for pod in self._pods() if _runs(pod, "operator")], 90)
        return process(pods[0], "operator")

    def _pods(self) -> list[Manifest]:
        found = home.list("pods", "app.kubernetes.io/name=paceline")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def process(pod: Manifest, container: str) -> int:
    """Number on this machine of a container's first process, with which all others of it end."""
    identity = status_of(pod, container)["containerID"].partition("://")[2]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            inside = identity in (status.parent / "cgroup").read_text()
            numbers = next((line.split()[1:] for line in status.read_text().splitlines() if line[:6] == "NSpid:"), [])
        except OSError:  # it ended
            continue
        if inside and numbers[-1:] == ["1"]:
            return int(numbers[0])
    raise ProcessLookupError(f"{container} of {pod['metadata']['name']} does not run here")


def kill(pid: int) -> None:
    """SIGKILL; returns when it is gone."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while Path("/proc", str(pid)).exists() and _state(pid) != "Z":
        assert time.monotonic() < deadline, f"process {pid} does not die"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _runs(pod: Manifest, container: str) -> bool:
    statuses = pod["status"].get("containerStatuses", ())
    return any(s["name"] == container and "running" in s["state"] for s in statuses)
