"""Objects that protect pods: network policies, and disruption budgets that limit a drain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paceline.core import Server
from paceline.core.manifest import Manifest
from paceline.core.names import POOL_LABEL, RUN_LABEL, child_name
from paceline.engines import ENGINES
from paceline.render.common import Owner, metadata
from paceline.render.serving import labels

NETWORK_POLICY, DISRUPTION_BUDGET = "NetworkPolicy", "PodDisruptionBudget"
DNS = 53


def servers_network(owner: Owner, pool: str, servers: Sequence[Server], kept: Iterable[int] = ()) -> Manifest:
    """Ingress to the ports of the arms' engines and of `kept` renderings, to those that the user's containers declare,
    and to all ports between the nodes of a server. Egress is unrestricted: a server may store its cache elsewhere."""
    among = labels(owner, pool)
    ingress: list[Manifest] = [{"ports": list(_ports(servers, kept))}]
    if servers[0].accelerator.nodes > 1:
        ingress.append({"from": [{"podSelector": {"matchLabels": among}}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": NETWORK_POLICY,
        "metadata": metadata(child_name(owner.name, pool), owner, among),
        "spec": {"podSelector": {"matchLabels": among}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def rounds_network(owner: Owner, pool: str) -> Manifest:
    """For all rounds of the BenchmarkRun `owner`. No ingress: the client only talks to its own pod. Egress to DNS only:
    the models are on the volume, and a round must not measure another machine."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": NETWORK_POLICY,
        "metadata": metadata(child_name(owner.name, "rounds"), owner, {RUN_LABEL: owner.name, POOL_LABEL: pool}),
        "spec": {
            "podSelector": {"matchLabels": {RUN_LABEL: owner.name}},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"ports": [{"port": DNS, "protocol": "UDP"}, {"port": DNS, "protocol": "TCP"}]}],
        },
    }


def disruption_budget(owner: Owner, pool: str) -> Manifest:
    """A drain takes one server at a time. It may take the only server of a pool, and a server that is not ready, so
    that no drain waits forever."""
    among = labels(owner, pool)
    return {
        "apiVersion": "policy/v1",
        "kind": DISRUPTION_BUDGET,
        "metadata": metadata(child_name(owner.name, pool), owner, among),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": among},
        },
    }


def _ports(servers: Sequence[Server], kept: Iterable[int]) -> Iterator[Mapping[str, Any]]:
    for port in sorted({*(ENGINES[server.engine.type].port for server in servers), *kept}):
        yield {"port": port, "protocol": "TCP"}
    spec = servers[0].engine.pod_template.get("spec", {})
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        for port in container.get("ports") or ():
            # Skip malformed ports: the API server refuses them when the pod is created.
            if isinstance(port, Mapping) and isinstance(number := port.get("containerPort"), int):
                yield {"port": number, "protocol": port.get("protocol", "TCP")}
