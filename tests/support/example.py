"""examples/qwen3-coder-next.yaml as the builders see it, after a prefetch."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.core import Arm, DeploymentSpec, RunSpec, Server
from paceline.plan.deployment import Pool, Snapshot
from paceline.plan.deployment.models import models_of, pin
from paceline.plan.deployment.pool import pools
from paceline.render import Owner, Settings

FILE = Path(__file__).parents[2] / "examples" / "qwen3-coder-next.yaml"
SETTINGS = Settings(
    image="ghcr.io/paceline/paceline:0.1.0",
    server_priority_class="paceline-server",
    benchmark_priority_class="paceline-benchmark",
)
DEPLOYED = Owner(kind="SpeculativeDeployment", name="qwen3-coder-next", namespace="models", uid="uid-of-the-deployment")
RUN = Owner(
    kind="BenchmarkRun",
    name="qwen3-coder-next-latency-0123456789-1",
    namespace="models",
    uid="uid-of-the-run",
    deployment="uid-of-the-deployment",
)


@cache
def spec() -> DeploymentSpec:
    """As written: no commit is known."""
    return api.deployment(yaml.safe_load(FILE.read_text()))


@cache
def pool(name: str = "latency") -> Pool:
    """With every model at a commit."""
    manifest: dict[str, Any] = yaml.safe_load(FILE.read_text())
    manifest["metadata"] |= {"namespace": DEPLOYED.namespace, "uid": DEPLOYED.uid}
    snapshot = Snapshot(manifest=manifest, spec=spec(), invalid="", children={}, settings=SETTINGS)
    commits = {(m.source, m.revision): str(n) * 40 for n, m in enumerate(models_of(spec()), start=1)}
    return next(found for found in pools(snapshot, pin(spec(), commits), datetime.now(UTC)) if found.name == name)


def server(name: str = "latency") -> Server:
    return pool(name).server


def arm(name: str, of: str = "latency") -> Arm:
    return pool(of).arms[name]


def run() -> RunSpec:
    return pool().run_spec
