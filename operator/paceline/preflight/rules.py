"""Checks facts of a target and its draft heads for problems, before any GPU is taken.

Rules pass if a fact is missing. The engine's behaviour in each case: SGLang 0.5.23, tried or read.
"""

from collections.abc import Iterator, Mapping, Sequence

from paceline.core import Arm, Draft, ModelFacts, Server, by_server
from paceline.engines import ENGINES
from paceline.engines.model_rules import ModelFinding, ModelRule, PairFacts, PoolFacts
from paceline.preflight import heads, hooks, layers, memory, promotion, servers, shapes, speculators
from paceline.preflight.servers import named_heads

POOL_RULES: tuple[ModelRule[PoolFacts], ...] = (
    *servers.RULES,
    *memory.RULES,
    *promotion.RULES,
    *speculators.SPECULATOR_RULES,
)
PAIR_RULES: tuple[ModelRule[PairFacts], ...] = (
    *heads.RULES,
    *shapes.RULES,
    *layers.RULES,
    *hooks.RULES,
    *speculators.RULES,
)


def pair_rules(engine: str) -> tuple[ModelRule[PairFacts], ...]:
    """The rules on a head and its target: the engine's own, which replace shared ones with the same id, and others."""
    rules = (*PAIR_RULES, *ENGINES[engine].model_rules)
    return tuple({rule.id: rule for rule in rules}.values())


def findings(server: Server, arms: Sequence[Arm], facts: Mapping[str, ModelFacts]) -> tuple[ModelFinding, ...]:
    """All findings about a pool's arms; `facts` by source, as a fetch reports them. Those of an arm with an engine of
    its own follow, unless all arms have them.

    Empty before the fetch, while the target itself is unknown.
    """
    if server.target.source not in facts:
        return ()
    return tuple(dict.fromkeys(one for own, group in by_server(server, arms) for one in _findings(own, group, facts)))


def _findings(server: Server, arms: Sequence[Arm], facts: Mapping[str, ModelFacts]) -> Iterator[ModelFinding]:
    heads = named_heads(arms) - {server.target.source}
    pool = PoolFacts(
        server=server,
        arms=tuple(arms),
        target=facts[server.target.source],
        heads={source: facts[source] for source in sorted(heads & facts.keys())},
    )
    for pool_rule in POOL_RULES:
        yield from pool_rule.findings(pool)
    for rule in pair_rules(server.engine.type):
        for pair in _pairs(pool, each_candidate=rule.each_candidate):
            yield from rule.findings(pair)


def _pairs(pool: PoolFacts, *, each_candidate: bool) -> Iterator[PairFacts]:
    """Each candidate, or each head once with its first candidate; without unknown algorithms, about which rules assume
    nothing."""
    seen: set[Draft] = set()
    for arm in pool.arms:
        if arm.draft is None or arm.custom or (arm.draft in seen and not each_candidate):
            continue
        seen.add(arm.draft)
        source = arm.draft.model.source if arm.draft.model else None
        yield PairFacts(
            server=pool.server,
            arm=arm,
            draft=arm.draft,
            target=pool.target,
            head=pool.heads.get(source or "", ModelFacts()),
        )
