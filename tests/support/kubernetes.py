"""kubectl on the cluster that `make test` has brought up, and a namespace of its own for every story."""

import builtins
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
import yaml

from paceline.api.round import with_rounds

Manifest = dict[str, Any]
T = TypeVar("T")

STATE = Path(os.environ.get("PACELINE_STATE", "/var/tmp/paceline-cluster"))
KUBECTL = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline")) / "bin" / "kubectl"
MARKER = STATE / ".paceline-cluster"
MADE_BY = (MARKER.read_text().strip() if MARKER.exists() else "") or "own"
"""`own` or `kind`: what CLUSTER was when the cluster was made (dev/cluster/env.sh)."""
only_on_the_own = pytest.mark.skipif(
    MADE_BY == "kind", reason="reads or kills what only the own cluster has on the machine"
)
OPERATOR = "paceline-system"
GPU = "nvidia.com/gpu"


def run(*arguments: str, feed: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), *arguments]
    return subprocess.run(command, input=feed, capture_output=True, text=True, timeout=120, check=False)


def kubectl(*arguments: str, feed: str | None = None) -> str:
    """What it printed; it must succeed."""
    done = run(*arguments, feed=feed)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def listed(*arguments: str) -> list[Manifest]:
    """`listed("pods", "-A")`."""
    found: list[Manifest] = json.loads(kubectl("get", *arguments, "-o", "json"))["items"]
    return found


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where a story happens."""

    name: str

    def kubectl(self, *arguments: str, feed: str | None = None) -> str:
        return kubectl("--namespace", self.name, *arguments, feed=feed)

    def apply(self, manifest: Manifest) -> None:
        self.kubectl("apply", "-f", "-", feed=yaml.safe_dump(manifest))

    def refused(self, manifest: Manifest) -> str:
        """What the API server says against it."""
        done = run("--namespace", self.name, "apply", "-f", "-", feed=yaml.safe_dump(manifest))
        assert done.returncode != 0, f"it was accepted: {done.stdout}"
        return done.stderr

    def list(self, kind: str, labels: str = "") -> list[Manifest]:
        """By name; runs with their rounds."""
        found = listed(kind, "--namespace", self.name, "--selector", labels)
        return self._with_rounds(found) if kind == "bench" else found

    def get(self, kind: str, name: str) -> Manifest:
        """Of a run, with its rounds."""
        found: Manifest = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return self._with_rounds([found])[0] if kind == "bench" else found

    def _with_rounds(self, runs: Sequence[Manifest]) -> "builtins.list[Manifest]":
        rounds = listed("benchround", "--namespace", self.name)
        return [with_rounds(run, rounds) for run in runs]

    def logs(self, pod: str, container: str) -> str:
        """Empty while the container does not run."""
        return run("--namespace", self.name, "logs", pod, "--container", container).stdout

    def wait(self, what: str, look: Callable[[], T | None], seconds: float) -> T:
        """The first answer that is true; the test fails, and shows what there is, if there is none in time."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                self.fail(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(0.5)
        return found

    def fail(self, why: str) -> NoReturn:
        said = [
            why,
            *(run("--namespace", self.name, *arguments).stdout for arguments in SHOWN),
            run("--namespace", OPERATOR, "get", "pods").stdout,
            run("--namespace", OPERATOR, "logs", "deployment/paceline", "--tail", "60").stdout,
        ]
        pytest.fail("\n".join(said), pytrace=False)


SHOWN = (
    ("describe", "specdep"),
    ("get", "bench,jobs,pods", "-o", "wide"),
    ("get", "bench", "-o", "jsonpath={range .items[*]}{.metadata.name}{': '}{.status}{'\\n'}{end}"),
    ("get", "events", "--sort-by", ".metadata.resourceVersion"),
)
"""What a person would look at first."""


def labels_of(manifest: Manifest) -> dict[str, str]:
    found: dict[str, str] = manifest["metadata"].get("labels", {})
    return found


def condition(manifest: Manifest, kind: str) -> Manifest | None:
    """True or False; None where it is absent."""
    return next((c for c in manifest.get("status", {}).get("conditions", ()) if c["type"] == kind), None)


def says(manifest: Manifest, kind: str, status: str, reason: str) -> bool:
    found = condition(manifest, kind)
    return found is not None and (found["status"], found["reason"]) == (status, reason)


def ended(pod: Manifest) -> bool:
    """Its GPUs are free again for the scheduler."""
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def gpus_of(pod: Manifest) -> int:
    """The containers of a round run one after another."""
    containers = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    return max(int(container.get("resources", {}).get("limits", {}).get(GPU, 0)) for container in containers)
