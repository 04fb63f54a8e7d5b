"""Reacts to the judgement on the servers (`paceline.watch`): whether speculation still pays, which pools to watch, and
the performance expected from the evidence.

A judgement exists only in the operator's memory; its consequences are in status: a hold, or why the pool is degraded.
So a restarted operator changes nothing before it has watched for a window. What the evidence measured of the served
candidate is kept in status, too, so that it outlives the run.
"""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from paceline import api
from paceline.api import Cause, Reason
from paceline.api.run_status import Result
from paceline.api.status import Degraded, ExpectedLoad, Hold, PoolStatus
from paceline.api.status import ExpectedTraffic as Remembered
from paceline.core import BASELINE, Arm, DeploymentSpec, GuardAction, PoolSettings, RunSpec
from paceline.core.canonical import without_empty
from paceline.core.manifest import Object
from paceline.core.record import from_status
from paceline.engines import verify_tokens
from paceline.evidence import same_server
from paceline.plan.deployment.choose import Choice, Rollout
from paceline.plan.deployment.holds import held_by_a_person, holds, way_out
from paceline.plan.deployment.incumbent import served_of
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import finished
from paceline.plan.step import StepResult, parse_time, timestamp
from paceline.watch import Expected, Judgement, JudgementKind, Watched

_REASONS: dict[JudgementKind, Literal["AcceptanceDropped", "Hung", "BeyondCrossover"]] = {
    JudgementKind.ACCEPTANCE_DROPPED: "AcceptanceDropped",
    JudgementKind.HUNG: "Hung",
    JudgementKind.BEYOND_CROSSOVER: "BeyondCrossover",
}
"""Kind of judgement → reason of SpeculationDegraded."""
SERVED_BETTER_BY_THE_BASELINE = (JudgementKind.ACCEPTANCE_DROPPED, JudgementKind.HUNG)
"""Judgements for which the baseline would serve better. BeyondCrossover is none: the load is not the candidate's fault,
and would change before restarts end."""


def report_degraded(rollout: Rollout, now: datetime) -> StepResult:
    """Keep the evidence's expectations of the choice, and report the judgement on it. `take_down` has already fallen
    back if the guard may."""
    found = _degraded(rollout, now)
    return StepResult(
        causes=tuple(degraded_causes(rollout.pool.name, holds(rollout.pool), found)),
        status={"expected": _expected(rollout.pool, rollout.choice), "degraded": found},
        notes=(*_unread(rollout), *_unwatched(rollout, now)),
    )


def _unread(rollout: Rollout) -> Iterator[str]:
    """A note that the servers cannot be watched. It keeps its first wording, because the message contains the elapsed
    time."""
    pool, judgement = rollout.pool, _judged(rollout)
    if judgement and judgement.kind is JudgementKind.UNREADABLE:
        begins = f"spec.guard: pool {pool.name} cannot be watched: "
        before = (note for note in pool.snapshot.status.notes if note.startswith(begins))
        yield next(before, begins + judgement.message)


def _unwatched(rollout: Rollout, now: datetime) -> Iterator[str]:
    """A pool is not watched while its servers are replaced: two revisions serve, and the evidence covers one. A note
    says so once the replacement takes longer than its deadline."""
    pool, target = rollout.pool, rollout.pool.remembered.target
    serves = pool.remembered.serving is not None and pool.servers is not None and pool.servers.ready
    if pool.deployment.guard.action is GuardAction.NONE or not serves or rollout.settled or rollout.has_served:
        return
    if target is None or target.revision != rollout.choice.revision:
        return
    if now >= parse_time(target.start_time) + pool.deployment.promotion.progress_deadline:
        by = f"{target.arm} at {target.revision} since {target.start_time}"
        yield f"spec.guard: pool {pool.name} is not watched while its servers are replaced, by {by}"


def _judged(rollout: Rollout) -> Judgement | None:
    """The judgement on what is served; None if there is none, or if it concerns another revision."""
    pool = rollout.pool
    judgement = pool.snapshot.judgements.get(pool.name)
    if judgement is None or judgement.revision != rollout.choice.revision or not rollout.has_served:
        return None
    return None if pool.deployment.guard.action is GuardAction.NONE else judgement


def falls_back(rollout: Rollout) -> Judgement | None:
    """The judgement for which the pool must fall back to the baseline; None if there is none."""
    judgement, pool = _judged(rollout), rollout.pool
    wanted = pool.deployment.guard.action is GuardAction.FALLBACK and not pool.frozen and rollout.choice.arm != BASELINE
    return judgement if judgement and wanted and judgement.kind in SERVED_BETTER_BY_THE_BASELINE else None


def _degraded(rollout: Rollout, now: datetime) -> Degraded | None:
    """Why speculation does not pay; unchanged while there is no judgement. An idle or unreadable pool says nothing
    about acceptance."""
    pool, choice = rollout.pool, rollout.choice
    before = pool.remembered.degraded
    if pool.deployment.guard.action is GuardAction.NONE or (before and before.revision != choice.revision):
        before = None
    judgement = _judged(rollout)
    if judgement is None or judgement.kind is JudgementKind.UNREADABLE:
        return before
    if judgement.kind is JudgementKind.IDLE:
        return before if before and before.reason == "AcceptanceDropped" else None
    reason = _REASONS.get(judgement.kind)
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
    """Advice for a person."""
    if judgement.kind is JudgementKind.BEYOND_CROSSOVER:
        return _suited(pool, judgement.numbers.running_requests)
    if choice.arm == BASELINE:
        return "the baseline is served, so there is nothing to fall back to: restart the servers"
    if pool.deployment.guard.action is GuardAction.FALLBACK:
        if pool.suspended:
            return "nothing is changed while spec.suspend is set"
        held = held_by_a_person(pool)
        from_baseline = held is not None and held.revision == pool.revision(pool.arms[BASELINE])
        stays = f"a person rolled back from the baseline, so it does not take over: {way_out(pool)}"
        return stays if from_baseline else ""
    return "guard.action Fallback would serve the baseline"


def _suited(pool: Pool, load: float | None) -> str:
    """Advice for this load: another pool that is measured at it; without such a pool, what to measure."""
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


def degraded_causes(pool: str, holds: Iterable[Hold], found: Degraded | None) -> Iterator[Cause]:
    """Causes of SpeculationDegraded."""
    for one in holds:
        if one.reason == "Fallback":
            yield Cause(Reason.FellBack, pool, f"{one.arm}: {one.message}")
    if found and found.reason:
        yield Cause(Reason[found.reason], pool, found.message)


def watched_pools(snapshot: Snapshot, entries: Iterable[PoolStatus]) -> dict[str, Watched]:
    """Pool → its servers, if all of them have had the target's revision."""
    spec = snapshot.spec
    if spec is None or spec.guard.action is GuardAction.NONE:
        return {}
    pools = {pool.name: pool for pool in spec.pools}
    return {
        entry.name: found
        for entry in entries
        if entry.name in pools and (found := _watched(snapshot, spec, pools[entry.name], entry))
    }


def _watched(snapshot: Snapshot, spec: DeploymentSpec, pool: PoolSettings, entry: PoolStatus) -> Watched | None:
    serving, target = entry.serving, entry.target
    if serving is None or target is None or serving.revision != target.revision:
        return None
    known = entry.expected if entry.expected and entry.expected.revision == serving.revision else Remembered()
    served = served_of(snapshot.revisions(pool.name).get(serving.revision))
    server, arm = served or (spec.server, next((arm for arm in pool.arms if arm.name == serving.arm), None))
    engine = (arm and arm.engine) or server.engine
    return Watched(
        revision=serving.revision,
        arm=serving.arm,
        engine=engine.type,
        version=engine.version,
        verify_tokens=known.verify_tokens or 1,
        expected=tuple(_watched_loads(known)),
        acceptance_drop=spec.guard.acceptance_drop,
        window=spec.guard.window,
        speculates_up_to=known.crossover,
        source=spec.guard.source,
        depth_follows_load=arm is not None and arm.engine_chooses_depth,
    )


def _watched_loads(known: Remembered) -> Iterator[Expected]:
    for load in known.loads:
        if load.concurrency is not None:
            yield Expected(
                concurrency=load.concurrency,
                accept_length=load.accept_length,
                ttft_seconds=load.mean_ttft,
                itl_seconds=load.mean_tpot,
            )


def _expected(pool: Pool, choice: Choice) -> Remembered | None:
    """The remembered expectations, or else those of the run that promoted the choice, if it still exists. None for the
    baseline, and for a candidate whose evidence is lost."""
    if choice.arm == BASELINE or not choice.evidence.run:
        return None
    before = pool.remembered.expected
    same = before is not None and (before.revision, before.run) == (choice.revision, choice.evidence.run)
    if same and before and before.crossover:
        return before
    run = next((run for run in pool.runs if run.name == choice.evidence.run), None)
    if run is None:
        return before if same else None
    found = before if same else _of_run(pool, run, choice)
    return found and replace(found, crossover=_crossover(pool, run, choice))


def _of_run(pool: Pool, run: Run, choice: Choice) -> Remembered | None:
    """The run's expectations of the choice; None if this release cannot read the run's spec."""
    try:
        spec = api.run(run.manifest)
    except api.InvalidManifestError:
        return None
    arm = _arm(spec, choice.arm) or _arm(spec, run.winner)
    if arm is None:
        return None
    return Remembered(
        revision=choice.revision,
        run=run.name,
        verify_tokens=verify_tokens(spec.server, arm),
        loads=tuple(_loads(run, arm.name, {one.name for one in spec.workloads})),
    )


def _arm(spec: RunSpec, name: str | None) -> Arm | None:
    return next((arm for arm in spec.arms if arm.name == name), None)


def _loads(run: Run, arm: str, workloads: Container[str]) -> Iterator[ExpectedLoad]:
    for result in run.status.results or ():
        if result.arm == arm and result.workload in workloads:
            yield ExpectedLoad(
                workload=result.workload,
                concurrency=result.concurrency,
                accept_length=result.accept_length,
                mean_ttft=result.mean_ttft,
                mean_tpot=result.mean_tpot,
            )


def _crossover(pool: Pool, run: Run, choice: Choice) -> float | None:
    arms = {arm["name"] for arm in run.spec["arms"]}
    name = choice.arm if choice.arm in arms else run.winner or ""
    return crossover_of(run.spec, name, pool.snapshot.of("BenchmarkRun"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Candidate over baseline at one concurrency: geometric means over its datasets."""

    ratio: float
    lower: float
    upper: float


def crossover_of(evidence: Object, arm: str, runs: Iterable[Object]) -> float | None:
    """The concurrency at which the arm of `evidence` is as fast as the baseline, on a straight line of ln(ratio) over
    ln(concurrency) between the largest load at which it was shown faster and the next at which it was shown slower.
    None if it was never shown slower, or not shown faster below that load. The latest run for a load counts."""
    ratios: dict[int, Ratio] = {}
    for run in sorted(runs, key=lambda run: str((run.get("status") or {}).get("completionTime", ""))):
        if finished(run) and (name := _same_arm(evidence, arm, run["spec"])):
            ratios |= _by_load(_results(run, name))
    slower = min((load for load, found in ratios.items() if found.upper < 1), default=None)
    faster = max((load for load, found in ratios.items() if found.lower > 1 and load < (slower or 0)), default=None)
    return None if slower is None or faster is None else _zero(faster, ratios[faster], slower, ratios[slower])


def _zero(faster: int, above: Ratio, slower: int, below: Ratio) -> float:
    high, low = math.log(above.ratio), math.log(below.ratio)
    return faster * math.pow(slower / faster, high / (high - low))


def _same_arm(evidence: Object, arm: str, other: Object) -> str | None:
    """The name of this arm in `other`, if its server is the same."""
    if not same_server(evidence, other):
        return None
    wanted = next((_unnamed(each) for each in evidence["arms"] if each["name"] == arm), None)
    return next((each["name"] for each in other["arms"] if _unnamed(each) == wanted), None)


def _unnamed(arm: Object) -> Any:
    return without_empty({key: value for key, value in arm.items() if key != "name"})


def _results(run: Object, arm: str) -> Iterator[tuple[int, Result]]:
    """Concurrency and result of each closed loop that has bounds."""
    for entry in (run.get("status") or {}).get("results") or ():
        result = from_status(Result, entry)
        load = result.workload.rpartition("@")[2]
        if result.arm == arm and load.isdigit() and result.ratio and result.lower and result.upper:
            yield int(load), result


def _by_load(results: Iterable[tuple[int, Result]]) -> dict[int, Ratio]:
    found = defaultdict[int, list[Result]](list)
    for load, result in results:
        found[load].append(result)
    return {
        load: Ratio(
            ratio=_mean(result.ratio for result in of_load),
            lower=_mean(result.lower for result in of_load),
            upper=_mean(result.upper for result in of_load),
        )
        for load, of_load in found.items()
    }


def _mean(values: Iterable[float | None]) -> float:
    """Geometric mean."""
    logs = [math.log(value) for value in values if value and value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan
