"""The part of `paceline plan` about what the cost buys: the smallest difference that a verdict can show, and when."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline import api, gate
from paceline.api.round import ROUND_KIND, rounds_of, with_rounds
from paceline.cli.manifests import RUN
from paceline.core import BASELINE, PoolSettings, Workload
from paceline.core.manifest import Manifest
from paceline.evidence.round_status import measurements
from paceline.gate import Noise, assumed_noise, observed_noise, smallest_shown
from paceline.plan.costs import FEW, SPREAD_OF_MANY, Assumptions, EvidenceCost, RoundCost

ASSUMED = (
    "assumed, of 0.5 % for a point and 1 % for a server's start, as is usual on one host, 15 % between prompts, and "
    f"between requests 5 %, from {FEW + 1} at once {100 * SPREAD_OF_MANY:g} % (docs/gate.md); --cluster takes it from "
    "earlier runs"
)


AFTER_A_SEARCH = 1
"""Candidates of the gate after a search: the search's winner. If a schedule is written, there are three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest difference that a pool's verdict can show, with the assumed noise and its source."""

    noise: Noise
    source: str
    cut: int | None
    """Rounds after which a budget ends the run at worst; None if it reaches the last look."""
    looks: tuple[tuple[int, float, RoundCost, RoundCost], ...]
    """The first and the last look: rounds, smallest advantage, and the cost up to there, best and worst case."""


def smallest(
    pool: PoolSettings,
    least: EvidenceCost,
    most: EvidenceCost,
    existing: Collection[Manifest],
    assumed: Assumptions,
) -> Detectable:
    """`least` is a verdict's cost at the first look, `most` at the last. `assumed` has the spread of requests."""
    noise, source = _observed(pool, existing) or (_assumed(pool, least.requests, assumed), ASSUMED)
    looks = pool.gate.decide_after_rounds
    candidates = AFTER_A_SEARCH if pool.search else sum(arm.name != BASELINE for arm in pool.arms)
    between = looks[-1] - looks[0]
    worst = (*most.by_round, *most.by_round[-1:] * (looks[-1] - len(most.by_round)))
    until = {
        looks[0]: (_total(least.by_round), _total(worst[: len(worst) - between])),
        looks[-1]: (_total((*least.by_round, *least.by_round[-1:] * between)), _total(worst)),
    }
    return Detectable(
        cut=len(most.by_round) if len(most.by_round) < looks[-1] else None,
        noise=noise,
        source=source,
        looks=tuple(
            (look, smallest_shown(pool.gate, candidates, look, noise), *costs) for look, costs in until.items()
        ),
    )


def smallest_table(shown: Mapping[str, Detectable]) -> Iterator[str]:
    """The smallest differences, each with its physical minimum: a verdict at that look costs at least its servers'
    starts and its answers' tokens."""
    if not shown:
        return
    yield "\nWhat a verdict can show, and its least cost by then, in GPU-hours:"
    yield f"{'POOL':<20} {'ROUNDS':>7} {'SHOWS':>9} {'STARTS':>10} {'TOKENS':>12} {'TOGETHER':>12}"
    for pool, of_pool in shown.items():
        for look, advantage, least, most in of_pool.looks:
            parts = ((least.starting, most.starting), (least.answering, most.answering), (least.all, most.all))
            starts, tokens, together = (_hours(*part) for part in parts)
            row = f"{starts:>10} {tokens:>12} {together:>12}"
            yield f"{pool:<20} {look:>7} {f'+{advantage:.1%}':>9} {row}"
    yield "A candidate this much faster on every workload is promoted there half of the time."
    for pool, of_pool in shown.items():
        if of_pool.cut is not None:
            last = of_pool.looks[-1][0]
            yield f"At worst the budget ends {pool} after round {of_pool.cut} of {last}, before later looks."


def noises(shown: Mapping[str, Detectable]) -> Iterator[str]:
    """The assumed variation of a speed-up between rounds."""
    for source in dict.fromkeys(of_pool.source for of_pool in shown.values()):
        yield f"  Between rounds a speed-up varies (standard deviations), {source}:"
        for pool, of_pool in shown.items():
            if of_pool.source == source:
                noise = of_pool.noise
                yield f"    {pool:<16} {noise.mean:.1%} in the mean over workloads, {noise.workload:.1%} on one of them"


def _assumed(pool: PoolSettings, requests: Mapping[str, int], assumed: Assumptions) -> Noise:
    """The noise assumed for rounds with as many requests as the last one."""
    judged = _judged(pool.workloads)
    return assumed_noise(
        {one.name: requests.get(one.name, one.dataset.requests) for one in judged},
        {one.name: one.weight for one in judged},
        {one.name: assumed.spread_of(one) or 0.0 for one in judged},
    )


def _judged(workloads: Sequence[Workload]) -> Sequence[Workload]:
    """The closed loops, which choose the winner; all workloads if there are none."""
    return [workload for workload in workloads if not workload.rate] or workloads


def _observed(pool: PoolSettings, existing: Collection[Manifest]) -> tuple[Noise, str] | None:
    """The noise observed in runs of a pool with this name and the same workloads, and its source."""
    names = {workload.name for workload in pool.workloads}
    rounds, rounds_of_all = [], [stored for stored in existing if stored.get("kind") == ROUND_KIND]
    for stored in existing:
        if stored.get("kind") != RUN or stored["spec"].get("pool") != pool.name:
            continue
        try:
            run = api.run(stored)
        except api.InvalidManifestError:  # written by another release
            continue
        if {workload.name for workload in run.workloads} == names:
            weights = {workload.name: workload.weight for workload in _judged(run.workloads)}
            rounds.append(
                gate.rounds_table(BASELINE, weights, measurements(rounds_of(with_rounds(stored, rounds_of_all))))
            )
    found = observed_noise(rounds)
    return found and (found[0], f"measured in {found[1]} rounds of earlier runs")


def _total(rounds: Sequence[RoundCost]) -> RoundCost:
    return sum(rounds, RoundCost())


def _hours(least: float, most: float) -> str:
    first, last = f"{least / 3600:.1f}", f"{most / 3600:.1f}"
    return first if first == last else f"{first}-{last}"
