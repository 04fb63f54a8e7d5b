"""What stands around pods: who reaches them, whom they reach, and how many of them a drain takes at a time."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Server
from paceline.core.names import POOL_LABEL, RUN_LABEL, child_name
from paceline.engines import ENGINES
from paceline.render.common import Manifest, Owner, metadata
from paceline.render.serving import labels

NETWORK_POLICY, DISRUPTION_BUDGET = "NetworkPolicy", "PodDisruptionBudget"
DNS = 53


def servers_network(owner: Owner, pool: str, server: Server) -> Manifest:
    """In: the engine's port, and those that the user's containers declare; between the nodes of a server all ports. Out
    is left open: a server may keep what it computed elsewhere."""
    among = labels(owner, pool)
    ingress: list[Manifest] = [{"ports": list(_ports(server))}]
    if server.accelerator.nodes > 1:
        ingress.append({"from": [{"podSelector": {"matchLabels": among}}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": NETWORK_POLICY,
        "metadata": metadata(child_name(owner.name, pool), owner, among),
        "spec": {"podSelector": {"matchLabels": among}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def rounds_network(owner: Owner, pool: str) -> Manifest:
    """Of all rounds of the BenchmarkRun `owner`. In: nothing, for the client speaks to its own pod alone. Out: names
    may be looked up, and that is all: the models are there, and another's machine would be measured too."""
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
    """One server at a time, and the only one of a pool of one: no drain waits for ever, neither for such a pool nor for
    a server that does not work."""
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


def _ports(server: Server) -> Iterator[Mapping[str, Any]]:
    yield {"port": ENGINES[server.engine.name].port, "protocol": "TCP"}
    spec = server.engine.pod_template.get("spec", {})
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        for port in container.get("ports") or ():
            # What else stands there the API server refuses, of the pod.
            if isinstance(port, Mapping) and isinstance(number := port.get("containerPort"), int):
                yield {"port": number, "protocol": port.get("protocol", "TCP")}
