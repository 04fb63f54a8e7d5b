"""status.effective: what a spec comes to where it leaves out what follows from the rest."""

from paceline import core
from paceline.api.status import Effective, EffectiveGate, EffectivePool
from paceline.core.text import percentage


def effective(spec: core.DeploymentSpec) -> Effective:
    server = spec.server
    return Effective(
        served_name=server.served_name,
        engine=f"{server.engine.type} {server.engine.version}",
        claim_name=server.cache.claim or "",
        pools=tuple(map(_pool, spec.pools)),
    )


def _pool(pool: core.PoolSpec) -> EffectivePool:
    gate = EffectiveGate(
        min_improvement=percentage(pool.gate.min_improvement),
        max_regression=percentage(pool.gate.max_regression),
        confidence=percentage(pool.gate.confidence),
        decide_after_rounds=pool.gate.decide_after_rounds,
    )
    return EffectivePool(name=pool.name, candidates=tuple(arm.name for arm in pool.arms[1:]), gate=gate)
