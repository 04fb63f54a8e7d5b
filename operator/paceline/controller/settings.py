"""The operator's settings, from the chart's environment variables."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.evidence.signature import public_key
from paceline.kube.throttle import BURST, QPS
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
    qps: float = QPS
    burst: int = BURST
    """Requests to the API server: mean per second, and burst. The Lease and Events have separate limits."""
    metrics_tls: str = ""
    """Directory with tls.crt and tls.key: clients allowed by the API server read the metrics over HTTPS; "": anyone who
    reaches the port reads them."""
    log_level: str = "info"
    log_format: str = "text"
    prometheus: str = ""
    """URL of the Prometheus server for pools with guard.source Prometheus; "": none."""


def from_environment(env: Mapping[str, str] = os.environ) -> OperatorSettings:
    """Raises ValueError if PACELINE_PODS, which the chart writes, is not JSON, or a signer's key is none."""
    pods = json.loads(env.get("PACELINE_PODS") or "{}")
    return OperatorSettings(
        render=Settings(
            image=env.get("PACELINE_IMAGE", "paceline"),
            image_pull_policy=env.get("PACELINE_IMAGE_PULL_POLICY", "IfNotPresent"),
            image_pull_secrets=tuple(pods.get("imagePullSecrets") or ()),
            fetch_env=tuple(pods.get("fetchEnv") or ()),
            ca_bundle=(bundle["configMap"], bundle["key"]) if (bundle := pods.get("caBundle")) else None,
            resources=_texts(pods.get("resources") or {}),
            server_security=pods.get("securityContext") or {},
            server_pod_security=pods.get("podSecurityContext") or {},
            network_policies=frozenset(pods.get("networkPolicies") or ()),
            disruption_budgets=bool(pods.get("disruptionBudgets")),
            profile_required=frozenset(filter(None, env.get("PACELINE_PROFILE_REQUIRED", "").split(","))),
            imported_evidence=env.get("PACELINE_IMPORTED_EVIDENCE") == "true",
            signers=_keys(env.get("PACELINE_EVIDENCE_SIGNERS") or "{}"),
            server_priority_class=env.get("PACELINE_SERVER_PRIORITY_CLASS") or None,
            benchmark_priority_class=env.get("PACELINE_BENCHMARK_PRIORITY_CLASS") or None,
        ),
        namespaces=tuple(filter(None, env.get("PACELINE_NAMESPACES", "").split(","))),
        home=env.get("POD_NAMESPACE", "default"),
        identity=env.get("POD_NAME") or os.uname().nodename,
        metrics_port=int(env.get("PACELINE_METRICS_PORT", "8080")),
        probe_port=int(env.get("PACELINE_PROBE_PORT", "8081")),
        qps=float(env.get("PACELINE_QPS") or QPS),
        burst=int(env.get("PACELINE_BURST") or BURST),
        metrics_tls=env.get("PACELINE_METRICS_TLS", ""),
        log_level=env.get("PACELINE_LOG_LEVEL") or "info",
        log_format=env.get("PACELINE_LOG_FORMAT") or "text",
        prometheus=env.get("PACELINE_PROMETHEUS_URL", ""),
    )


def _keys(text: str) -> Mapping[str, str]:
    keys: Mapping[str, str] = json.loads(text)
    for name, pem in keys.items():
        public_key(f"evidence.signers.{name}", pem)
    return keys


def _texts(resources: Mapping[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Resource quantities as strings, as the API server stores them; containers without any are left out."""
    return {
        container: {part: {name: str(amount) for name, amount in amounts.items()} for part, amounts in parts.items()}
        for container, parts in resources.items()
        if parts
    }
