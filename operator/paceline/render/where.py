"""The placement of a round: requirements and preferences (decision 0036)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core.manifest import Manifest
from paceline.core.names import COMPONENT_LABEL

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_WEIGHT = 100
"""The Kubernetes maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """`node` is where the run measured last; `avoid` are nodes on which its latest tries failed. Both are preferences:
    a round runs wherever accelerators are free. `namespaces` are those with runs, with or without the run's own."""

    node: str = ""
    avoid: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


ANYWHERE = Where()


def affinity(where: Where, namespace: str, wanted: Mapping[str, Any]) -> Manifest:
    """The affinity of a round's pod in `namespace`; `wanted` is the user's node affinity for servers.

    A node runs one round at a time. The scheduler checks the anti-affinity of both pods, and the later pod names the
    namespace of the earlier one. So it is enough to name the namespaces with runs, and a pod in another namespace that
    merely has our label cannot block a round.
    """
    nodes = _nodes(where, wanted)
    rule = {
        "labelSelector": {"matchLabels": {COMPONENT_LABEL: "round"}},
        "topologyKey": HOSTNAME,
        "namespaces": sorted({namespace, *where.namespaces}),
    }
    return {**({"nodeAffinity": nodes} if nodes else {}), "podAntiAffinity": {REQUIRED: [rule]}}


def _nodes(where: Where, wanted: Mapping[str, Any]) -> Manifest:
    """Nodes are selected by name: the hostname label may differ."""
    better = [
        *([[_named("In", where.node)]] if where.node else ()),
        *([[_named("NotIn", node) for node in sorted(where.avoid)]] if where.avoid else ()),
    ]
    if not better:
        return dict(wanted)
    ours = [{"weight": MOST_WEIGHT, "preference": {"matchFields": fields}} for fields in better]
    return {**wanted, PREFERRED: [*wanted.get(PREFERRED, ()), *ours]}


def _named(operator: str, node: str) -> Manifest:
    """A term with one node: Kubernetes accepts one value per field."""
    return {"key": "metadata.name", "operator": operator, "values": [node]}
