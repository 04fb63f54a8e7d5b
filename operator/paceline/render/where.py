"""Where a round runs: what has to be so, and what is only better (decision 0036)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core.names import COMPONENT_LABEL
from paceline.render.common import Manifest

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_WEIGHT = 100
"""Kubernetes takes no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """`node` is where the run measured last and would best go on; `avoid` are nodes on which its latest tries came to
    nothing. Both are wishes: a round runs where there is room. `namespaces` are those in which somebody measures, its
    own among them or not."""

    node: str = ""
    avoid: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


ANYWHERE = Where()


def affinity(where: Where, namespace: str, wanted: Mapping[str, Any]) -> Manifest:
    """Of a round's pod in `namespace`; `wanted` is the node affinity that the user has for servers.

    Only one round has a node at a time. Whichever of two pods came later names the namespace of the other, and the
    scheduler asks both: so it is enough to name those that have runs, and a pod elsewhere that merely carries our label
    keeps nobody from measuring.
    """
    nodes = _nodes(where, wanted)
    rule = {
        "labelSelector": {"matchLabels": {COMPONENT_LABEL: "round"}},
        "topologyKey": HOSTNAME,
        "namespaces": sorted({namespace, *where.namespaces}),
    }
    return {**({"nodeAffinity": nodes} if nodes else {}), "podAntiAffinity": {REQUIRED: [rule]}}


def _nodes(where: Where, wanted: Mapping[str, Any]) -> Manifest:
    """By the node's own name: its hostname label may be another."""
    better = [
        *([[_named("In", where.node)]] if where.node else ()),
        *([[_named("NotIn", node) for node in sorted(where.avoid)]] if where.avoid else ()),
    ]
    if not better:
        return dict(wanted)
    ours = [{"weight": MOST_WEIGHT, "preference": {"matchFields": fields}} for fields in better]
    return {**wanted, PREFERRED: [*wanted.get(PREFERRED, ()), *ours]}


def _named(operator: str, node: str) -> Manifest:
    """Kubernetes takes one value of a field, no more."""
    return {"key": "metadata.name", "operator": operator, "values": [node]}
