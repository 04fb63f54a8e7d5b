"""Whether speculation still pays, by the judgement on the servers (`paceline.watch`).

A judgement is memory of the operator's process; what follows from it is in status: a hold, or why the pool is degraded.
So an operator that starts anew changes nothing before it has watched for a window.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from paceline.api import Cause, Reason
from paceline.api.status import Degraded, Hold, PoolStatus
from paceline.core import BASELINE, GuardAction
from paceline.plan.deployment.choose import Choice, has_served
from paceline.plan.deployment.hold import held_by_a_person, way_out
from paceline.plan.deployment.past_failures import beside_a_hold
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import timestamp
from paceline.watch import Judgement, JudgementKind

REASONS: dict[JudgementKind, Literal["AcceptanceDropped", "Hung", "BeyondCrossover"]] = {
    JudgementKind.ACCEPTANCE_DROPPED: "AcceptanceDropped",
    JudgementKind.HUNG: "Hung",
    JudgementKind.BEYOND_CROSSOVER: "BeyondCrossover",
}
"""Kind of judgement → reason of SpeculationDegraded."""
SERVED_BETTER_BY_THE_BASELINE = (JudgementKind.ACCEPTANCE_DROPPED, JudgementKind.HUNG)
"""Another load is no fault of the candidate: chased with restarts, it would be gone before they end."""


def judged(pool: Pool, choice: Choice) -> Judgement | None:
    """The judgement on what is served; None if there is none, or if it is about another revision."""
    judgement = pool.snapshot.judgements.get(pool.name)
    if judgement is None or judgement.revision != choice.revision or not has_served(pool, choice.revision):
        return None
    return None if pool.deployment.guard.action is GuardAction.NONE else judgement


def falls_back(pool: Pool, choice: Choice) -> Judgement | None:
    """The judgement for which the baseline is to be served instead."""
    judgement = judged(pool, choice)
    wanted = pool.deployment.guard.action is GuardAction.FALLBACK and not pool.suspended and choice.arm != BASELINE
    return judgement if judgement and wanted and judgement.kind in SERVED_BETTER_BY_THE_BASELINE else None


def degraded(pool: Pool, choice: Choice, now: datetime) -> Degraded | None:
    """Why speculation does not pay; as before while there is no judgement. An idle pool, and one that cannot be read,
    say nothing of the acceptance."""
    before = pool.remembered.degraded
    if pool.deployment.guard.action is GuardAction.NONE or (before and before.revision != choice.revision):
        before = None
    judgement = judged(pool, choice)
    if judgement is None or judgement.kind is JudgementKind.UNREADABLE:
        return before
    if judgement.kind is JudgementKind.IDLE:
        return before if before and before.reason == "AcceptanceDropped" else None
    reason = REASONS.get(judgement.kind)
    if reason is None:
        return None
    if before and before.reason == reason:
        return before
    return Degraded(
        reason=reason,
        message="; ".join(filter(None, (judgement.message.rstrip("."), _advice(pool, choice, judgement)))),
        since=judgement.since or timestamp(now),
        revision=choice.revision,
    )


def _advice(pool: Pool, choice: Choice, judgement: Judgement) -> str:
    """What a person can do."""
    if judgement.kind is JudgementKind.BEYOND_CROSSOVER:
        return _suited(pool, judgement.numbers.running_requests)
    if choice.arm == BASELINE:
        return "the baseline is served, so there is nothing to fall back to: restart the servers"
    if pool.deployment.guard.action is GuardAction.FALLBACK:
        if pool.suspended:
            return "nothing is changed while spec.suspend is set"
        held = held_by_a_person(pool)
        from_baseline = held is not None and held.revision == pool.revision(pool.arms[BASELINE])
        stays = f"a person has gone back from the baseline, so it does not take over: {way_out(pool)}"
        return stays if from_baseline else ""
    return "guard.action Fallback would serve the baseline"


def _suited(pool: Pool, load: float | None) -> str:
    """The pool that is measured at such a load; without one, how the engine's own schedule can be measured."""
    others = {
        other.name: max(workload.concurrency for workload in other.workloads)
        for other in pool.deployment.pools
        if other.name != pool.name and load is not None
    }
    enough = {name: most for name, most in others.items() if load is not None and most >= load}
    if enough:
        name = min(enough, key=lambda name: (enough[name], name))
        return f"pool {name} is measured at concurrency {enough[name]}: send this traffic there"
    at = f" {load:.0f}" if load else ""
    return (
        f"add concurrency{at} to this pool, and a candidate whose depth follows the load (adaptive, or a "
        "schedule); or make a pool for that load"
    )


def causes(pool: str, entry: PoolStatus, held: Hold | None) -> Iterator[Cause]:
    """SpeculationDegraded, from the pool's entry of status and its hold."""
    if held and held.reason == "Fallback":
        yield Cause(Reason.FellBack, pool, f"{held.arm}: {held.message}")
    other = beside_a_hold(entry, held)
    if other and other.reason == "Fallback":
        yield Cause(Reason.FellBack, pool, f"{other.arm}: {other.message}")
    if entry.degraded and entry.degraded.reason:
        yield Cause(Reason[entry.degraded.reason], pool, entry.degraded.message)
