"""What the chart tells the operator, by environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.render import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """`namespaces` empty: the whole cluster."""

    render: Settings
    namespaces: tuple[str, ...]
    home: str
    """The operator's own namespace: its Lease is there."""
    identity: str
    metrics_port: int
    probe_port: int


def from_environment(env: Mapping[str, str] = os.environ) -> OperatorSettings:
    return OperatorSettings(
        render=Settings(
            image=env.get("PACELINE_IMAGE", "paceline"),
            image_pull_policy=env.get("PACELINE_IMAGE_PULL_POLICY", "IfNotPresent"),
            server_priority_class=env.get("PACELINE_SERVER_PRIORITY_CLASS") or None,
            benchmark_priority_class=env.get("PACELINE_BENCHMARK_PRIORITY_CLASS") or None,
        ),
        namespaces=tuple(filter(None, env.get("PACELINE_NAMESPACES", "").split(","))),
        home=env.get("POD_NAMESPACE", "default"),
        identity=env.get("POD_NAME") or os.uname().nodename,
        metrics_port=int(env.get("PACELINE_METRICS_PORT", "8080")),
        probe_port=int(env.get("PACELINE_PROBE_PORT", "8081")),
    )
