"""What a spec comes to where it leaves out what follows from the rest, as fields of status."""

from typing import Any

from paceline import core
from paceline.api.status import EffectiveGate
from paceline.core.text import percentage


def of_deployment(spec: core.DeploymentSpec) -> dict[str, Any]:
    server = spec.server
    return {
        "served_name": server.served_name,
        "engine": f"{server.engine.type} {server.engine.version}",
        "claim_name": server.cache.claim or "",
    }


def of_pools(spec: core.DeploymentSpec) -> dict[str, dict[str, Any]]:
    """Pool → fields of its entry."""
    return {pool.name: _of_pool(pool) for pool in spec.pools}


def _of_pool(pool: core.PoolSpec) -> dict[str, Any]:
    gate = EffectiveGate(
        min_improvement=percentage(pool.gate.min_improvement),
        max_regression=percentage(pool.gate.max_regression),
        confidence=percentage(pool.gate.confidence),
        decide_after_rounds=pool.gate.decide_after_rounds,
    )
    return {"candidates": tuple(arm.name for arm in pool.arms[1:]), "gate": gate}


OF_NO_POOL: dict[str, Any] = {"candidates": (), "gate": None}
"""While spec is invalid."""
