"""Facts of a target and its draft heads → what would go wrong, before any GPU is taken.

Every rule says nothing where a fact is missing. What the engine does in each case: SGLang 0.5.23, tried or read.
"""

from collections.abc import Iterator, Mapping, Sequence

from paceline.core import Arm, Draft, Server
from paceline.preflight import heads, hooks, layers, memory, promotion, servers, speculators
from paceline.preflight.cases import Finding, Pool, Rule, Speculation, named_heads
from paceline.preflight.facts import ModelFacts

POOL_RULES: tuple[Rule[Pool], ...] = (*servers.RULES, *memory.RULES, *promotion.RULES, *speculators.POOL_RULES)
SPECULATION_RULES: tuple[Rule[Speculation], ...] = (*heads.RULES, *layers.RULES, *hooks.RULES, *speculators.RULES)

OF_AN_ARM = (
    "mla-drafts-chains",
    "blocks-fit-head",
    "quantization-is-not-inherited",
    "rejection-sampling-needs-one-vocabulary",
)
"""Rules on a candidate's shape and arguments; all others are on its head, which many may share."""


def findings(server: Server, arms: Sequence[Arm], facts: Mapping[str, ModelFacts]) -> tuple[Finding, ...]:
    """All findings about a pool's arms on this server; `facts` by source, as a fetch reports them.

    Nothing at all is said where the target itself is unknown: that is before the fetch.
    """
    if server.target.source not in facts:
        return ()
    target = facts[server.target.source]
    named = named_heads(arms) - {server.target.source}
    known = {source: facts[source] for source in sorted(named & facts.keys())}
    pool = Pool(server=server, arms=tuple(arms), target=target, heads=known)
    found = [finding for rule in POOL_RULES for finding in rule.findings(pool)]
    found += [finding for rule in SPECULATION_RULES for case in _cases(pool, rule) for finding in rule.findings(case)]
    return tuple(dict.fromkeys(found))


def _cases(pool: Pool, rule: Rule[Speculation]) -> Iterator[Speculation]:
    """Each candidate, or each head once with the first candidate that names it; none of an algorithm that no rule
    knows (0029)."""
    seen: set[Draft] = set()
    for arm in pool.arms:
        if arm.draft is None or arm.custom or (arm.draft in seen and rule.id not in OF_AN_ARM):
            continue
        seen.add(arm.draft)
        source = arm.draft.model.source if arm.draft.model else None
        yield Speculation(
            server=pool.server,
            arm=arm,
            draft=arm.draft,
            target=pool.target,
            head=pool.heads.get(source or "", ModelFacts()),
        )
