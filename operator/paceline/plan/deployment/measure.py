"""Manages the runs of a pool: stops those that must not continue, starts one for an open question, deletes old ones.

A pool measures unless one of these prevents it, in this order (`WAITS_OF_A_ROUND`, `WAITS_OF_A_RUN`):

    wait_while_suspended  spec.suspend is set
    a_person_holds        a person has rolled back or aborted
    baseline_failed       the baseline does not run, so candidates cannot be compared
    servers_come_first    the pool's servers do not match the choice yet, or another object has their name
    prompts_missing       a ConfigMap with prompts is missing
    window_closed         benchmark.window
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason, run_manifest_spec
from paceline.api.run_status import RunProgress
from paceline.api.status import Hold, PoolProgress
from paceline.core import BASELINE, Purpose, Scheme, Trigger, source_run
from paceline.core.names import ATTEMPT, TOKEN, TRIGGER, child_name
from paceline.engines.nodes import unmeasurable
from paceline.evidence import same_arms, surroundings
from paceline.plan.deployment import loan
from paceline.plan.deployment.change import report_change
from paceline.plan.deployment.choose import Rollout, asked_anew
from paceline.plan.deployment.decided import decision, not_promoted, not_used, person_hold
from paceline.plan.deployment.holds import baseline_failure, held_by_a_person, measured_again_at, way_out
from paceline.plan.deployment.pool import Pool, name_conflict, runs_in_use
from paceline.plan.deployment.runs import (
    Run,
    abort_runs,
    annotated,
    close,
    closed_window,
    supersede,
    suspend,
    window_changes_at,
    window_opens_at,
)
from paceline.plan.deployment.stalled import report_lasting
from paceline.plan.objects import differ, image_digest
from paceline.plan.step import Apply, Delete, StepResult, earliest, timestamp
from paceline.plan.trouble import ASK_AGAIN
from paceline.render import benchmark_run


def stop_runs(rollout: Rollout, now: datetime) -> StepResult:
    """End every run while a person's hold stands. Suspend every run while spec.suspend is set, because the former
    question may come back. Otherwise supersede runs of another question, and those that a person asked to repeat; and
    while benchmark.window is closed, the others start no round. This comes before serve, which may block for long."""
    pool, owner = rollout.pool, rollout.pool.snapshot.owner
    if held := held_by_a_person(pool):
        return StepResult(actions=abort_runs(owner, pool.runs, held.request))
    if pool.suspended:
        return StepResult(actions=suspend(owner, pool.runs))
    # A refused spec has no question: the previous one may come back.
    outdated = [run for run in pool.runs if not pool.refused and (not pool.asks(run) or pool.given_up(run))]
    going_on = [run for run in pool.runs if run not in outdated and run.under_way]
    return StepResult(
        actions=(*supersede(owner, outdated), *close(owner, going_on, closed_window(pool.deployment, now))),
        requeue_at=window_changes_at(pool.deployment, now) if going_on else None,
    )


def measure(rollout: Rollout, now: datetime) -> StepResult:
    """Report the verdict on the present question, follow its run, or create one. A blocked pool reports nothing,
    because its question is not known yet."""
    if rollout.pool.blocked:
        return StepResult(blocks=True)
    step = _measure(rollout, now)
    step = replace(step, notes=(*step.notes, *not_used(rollout.pool)))
    if rollout.pool.incumbent is None:
        return step
    change = report_change(rollout, rollout.pool.incumbent, step.causes, now)
    requeue_at = earliest((step.requeue_at, change.requeue_at))
    return replace(step, causes=(*step.causes, *change.causes), requeue_at=requeue_at)


def prune_runs(rollout: Rollout, _: datetime) -> StepResult:
    """Keep runs that status refers to, runs in `history` whose revision is kept, and the latest
    `promotion.revisionHistoryLimit` others: for people to read, and as evidence if their question comes back.
    Superseded runs answer no question and are deleted first. Runs measured without a cluster belong to the person who
    applied them."""
    pool = rollout.pool
    used = {run.name for run in (pool.decided, pool.search, *pool.attempts[:1]) if run} | runs_in_use(pool.remembered)
    used |= _of_history(pool)
    used |= {source_run(run.spec) for run in pool.runs if not run.finished}
    own = [run for run in pool.runs if run.finished and not run.imported]
    spare = sorted((run for run in own if run.name not in used), key=_worth)
    surplus = len(spare) - pool.deployment.promotion.revision_history_limit
    why = "beyond revisionHistoryLimit, and nothing refers to it"
    return StepResult(actions=tuple(Delete(run.manifest, why) for run in spare[: max(0, surplus)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What a pool waits for before it measures. `step` and `message` are its progress; `also`: causes besides
    Measuring's."""

    reason: Reason
    note: str = ""
    step: str
    message: str
    also: tuple[Cause, ...] = ()
    requeue_at: datetime | None = None


def wait_while_suspended(rollout: Rollout, _: datetime) -> Wait | None:
    return Wait(reason=Reason.Suspended, step="Suspended", message="") if rollout.pool.suspended else None


def a_person_holds(rollout: Rollout, _: datetime) -> Wait | None:
    held = held_by_a_person(rollout.pool)
    if held is None:
        return None
    return Wait(reason=Reason.RunsHeld, note=person_hold(rollout.pool, held), step="Held", message=held.message)


def baseline_failed(rollout: Rollout, _: datetime) -> Wait | None:
    held = baseline_failure(rollout.pool)
    if held is None:
        return None
    note = f"revision {held.revision}: {way_out(rollout.pool)}"
    return Wait(reason=Reason.BaselineHeld, note=note, step="Held", message=held.message)


def servers_come_first(rollout: Rollout, _: datetime) -> Wait | None:
    conflict = name_conflict(rollout.pool)
    if not conflict and rollout.settled:
        return None
    note = conflict or "the pool's own servers come first"
    return Wait(reason=Reason.WaitingForCapacity, note=note, step="Serving", message=note)


def prompts_missing(rollout: Rollout, now: datetime) -> Wait | None:
    absent = "; ".join(_missing_prompts(rollout.pool))
    if not absent:
        return None
    return Wait(
        reason=Reason.WaitingForPrompts,
        note=absent,
        step="WaitingForPrompts",
        message=absent,
        also=(Cause(Reason.PromptsMissing, rollout.pool.name, absent),),
        requeue_at=now + ASK_AGAIN,
    )


def window_closed(rollout: Rollout, now: datetime) -> Wait | None:
    opens = window_opens_at(rollout.pool.deployment, now)
    if opens is None:
        return None
    note, step = f"it opens at {timestamp(opens)}", "WaitingForWindow"
    reason = Reason.WaitingForWindow
    return Wait(reason=reason, note=note, step=step, message=f"benchmark.window: {note}", requeue_at=opens)


WAITS_OF_A_ROUND = (wait_while_suspended, a_person_holds, baseline_failed)
WAITS_OF_A_RUN = (servers_come_first, prompts_missing, window_closed)
Waits = Callable[[Rollout, datetime], Wait | None]


def _measure(rollout: Rollout, now: datetime) -> StepResult:
    pool = rollout.pool
    if pool.decided:
        return _retest(rollout, decision(rollout, pool.decided), now)
    if why := unmeasurable(pool.server):
        return _never(pool, f"{why}; set it to 1 to compare the candidates")
    causes = (_undecided(pool), not_promoted(rollout))
    running = next((run for run in pool.attempts if not run.finished), None)
    if wait := _first(WAITS_OF_A_ROUND, rollout, now):
        return _waits(pool, wait, causes, running.name if running and pool.suspended else "")
    # While serve blocks on a conflict, a run could not start or continue, so it must not be reported as doing so.
    if running is not None and not (running.suspended and name_conflict(pool)):
        return _follow(rollout, running, causes, now)
    if wait := _first(WAITS_OF_A_RUN, rollout, now):
        return _waits(pool, wait, causes)
    return _make_run(pool, causes)


def _first(waits: Iterable[Waits], rollout: Rollout, now: datetime) -> Wait | None:
    return next((wait for each in waits if (wait := each(rollout, now))), None)


def _waits(pool: Pool, wait: Wait, causes: tuple[Cause, ...], run: str = "") -> StepResult:
    return StepResult(
        causes=(*causes, Cause(wait.reason, pool.name, wait.note), *wait.also),
        status=_doing(wait.step, wait.message, run=run),
        requeue_at=wait.requeue_at,
    )


def _undecided(pool: Pool) -> Cause:
    if held := held_by_a_person(pool):
        return Cause(Reason.DecisionHeld, pool.name, person_hold(pool, held))
    stale = next((run.stale for run in pool.attempts if run.stale), "")
    return Cause(Reason.Undecided, pool.name, asked_anew(pool) or stale)


def _retest(rollout: Rollout, decided: StepResult, now: datetime) -> StepResult:
    """Measure a failed candidate again when it is due; the verdict stands until the next one."""
    pool, again = rollout.pool, measured_again_at(rollout.pool, rollout.choice.arm)
    running = next((run for run in pool.attempts if run.under_way), None)
    held_back = _first(WAITS_OF_A_ROUND, rollout, now) or name_conflict(pool)
    if held_back or not (running or again):
        return decided
    if running:
        more = _follow(rollout, running, decided.causes, now)
    elif again and now < again[0]:
        return replace(decided, requeue_at=again[0])
    elif opens := window_opens_at(pool.deployment, now):
        return replace(decided, requeue_at=opens)
    elif not rollout.settled or any(_missing_prompts(pool)):
        return decided
    else:
        more = _make_run(pool, decided.causes, held=again[1] if again else None)
    return replace(more, status={**decided.status, **more.status}, notes=decided.notes)


def _make_run(pool: Pool, causes: tuple[Cause, ...], held: Hold | None = None) -> StepResult:
    """Create a run. It takes over the rounds of a run whose question differs only in rule or candidates; a run for a
    hold measures new rounds."""
    before = (run.attempt for run in pool.runs if run.fingerprint == pool.fingerprint and not run.imported)
    attempt = 1 + max(before, default=pool.retried)
    name = child_name(pool.snapshot.name, pool.name, pool.fingerprint, attempt)
    stale = next((run for run in pool.attempts if run.stale), None)
    anew = pool.retried and not any(run.attempt > pool.retried for run in pool.attempts)
    token = pool.remembered.retried.token if anew and pool.remembered.retried else ""
    trigger = Trigger.HOLD if held else Trigger.RETRY if token else Trigger.STALE if stale else Trigger.SPEC
    searches = pool.run_spec.purpose is Purpose.SEARCH
    earlier = None if token or held or searches else _source(pool)
    servers = pool.servers if trigger is Trigger.STALE else None
    moved = stale and servers and differ(stale.image_of(pool.served_as), servers.image)
    image = image_digest(servers.image) if servers and moved else ""
    asked = replace(pool.run_spec, rounds_of=earlier.name if earlier else "")
    wanted = run_manifest_spec(asked)
    made_by = {ATTEMPT: str(attempt), TRIGGER: trigger.value, **({TOKEN: token or image} if token or image else {})}
    candidates = " or ".join(pool.in_question)
    whys = (
        f"{held.arm} is held ({held.reason}) since {held.start_time}" if held else "",
        f"retry={token}" if token else "",
        stale.stale if stale and not token else "",
        asked_anew(pool) if not (token or stale or held) else "",
        f"the rounds of {earlier.name} are judged again" if earlier else "",
    )
    why = "; ".join(filter(None, whys))
    first = f"it is not known yet whether {candidates} beats the baseline"
    if pool.incumbent and not searches:
        first = f"it is not known yet whether {' or '.join((BASELINE, *pool.in_question))} is as fast as what serves"
    elif searches:
        first = f"it is not known yet which of {len(pool.in_question)} candidates is the fastest"
    elif pool.search:
        first = f"{pool.search.name} has found {candidates}, but it is not known yet whether it beats the baseline"
    return StepResult(
        causes=(*causes, Cause(Reason.Measuring, pool.name, name)),
        actions=(Apply(benchmark_run(pool.snapshot.owner, pool.name, name, wanted, made_by), why or first),),
        # As `_follow` reports a run without a status, so that its appearance causes no further write.
        status={"attempts": attempt, **_doing("Measuring", name, run=name, because=why)},
    )


def _source(pool: Pool) -> Run | None:
    """The run whose rounds a new one takes over (decision 0033): the one with the most rounds of the present candidates
    in the same surroundings; of several the latest. Runs in Error, aged and stale ones, and those that a person asked
    to repeat do not count."""
    fitting = [(count, run.completion_time, run.name, run) for run in pool.runs if (count := _rounds(pool, run))]
    return max(fitting, key=lambda entry: entry[:3])[3] if fitting else None


def _rounds(pool: Pool, run: Run) -> int:
    """Number of the run's rounds, summed over the present candidates; 0 if it cannot be used."""
    unusable = run.aged or run.stale or run.outcome == "Error" or pool.given_up(run)
    if unusable or surroundings(run.spec) != surroundings(pool.wanted):
        return 0
    if pool.incumbent and not pool.is_beside(run):
        return 0  # what serves was not measured beside them
    return sum(run.status.arm_rounds.get(arm, 0) for arm in same_arms(pool.wanted, run.spec))


def _missing_prompts(pool: Pool) -> Iterator[str]:
    """A sentence for each missing dataset of the pool. ConfigMaps that the operator may not read count as present."""
    written = (pool.snapshot.manifest["spec"].get("benchmark") or {}).get("datasets") or ()
    field = {dataset["name"]: f"spec.benchmark.datasets[{n}].source" for n, dataset in enumerate(written)}
    for dataset in dict.fromkeys(workload.dataset for workload in pool.spec.workloads):
        source = dataset.address
        name, key = source.name, source.path
        if source.scheme is not Scheme.CONFIG_MAP or name not in pool.snapshot.config_maps:
            continue
        keys = pool.snapshot.config_maps[name]
        place = field.get(dataset.name, "spec.benchmark.datasets")
        if keys is None:
            yield f"{place}: there is no ConfigMap {name} in namespace {pool.snapshot.namespace}"
        elif key not in keys:
            yield f"{place}: ConfigMap {name} has no key {key}; it has {', '.join(sorted(keys)) or 'none'}"


def _never(pool: Pool, why: str) -> StepResult:
    return StepResult(
        causes=(
            Cause(Reason.NotMeasurable, pool.name, why),
            Cause(Reason.NotDecided, pool.name, why),
            Cause(Reason.NothingToMeasure, pool.name),
        ),
        status=_doing("NotMeasurable", why),
    )


def _follow(rollout: Rollout, run: Run, causes: tuple[Cause, ...], now: datetime) -> StepResult:
    pool = rollout.pool
    waits = Reason.RoundRefused if run.refused else Reason.WaitingForCapacity
    reason = waits if run.waits or run.refused else Reason.Measuring
    reason = Reason.WaitingForWindow if run.outside_window else reason
    stalled = report_lasting(pool.snapshot, run.refused, pool.name, now)
    lends = loan.loan_note(rollout, now)
    progress = run.status.progress or RunProgress()
    message = " ".join(filter(None, (run.name, progress.message)))
    message = f"{message.rstrip('.')}; {lends}" if lends else message
    closed = closed_window(pool.deployment, now)
    why = "spec.suspend is no longer set" if run.suspended else "benchmark.window is open"
    resume = Apply(annotated(pool.snapshot.owner, run, closed), why)
    return StepResult(
        causes=(*causes, Cause(reason, pool.name, message), *stalled.causes),
        actions=(resume,) if run.suspended or (run.opens_at and not closed) else (),
        status=_doing("Measuring", message, run=run.name, because=_because(pool, run)),
        requeue_at=earliest((stalled.requeue_at, loan.changes_at(rollout, now))),
    )


def _because(pool: Pool, run: Run) -> str:
    """The reason given when the run was created."""
    before = pool.remembered.progress
    return before.because if before and pool.remembered.benchmark_run == run.name else ""


def _doing(step: str, message: str = "", run: str = "", because: str = "") -> dict[str, Any]:
    """Fields of the pool's entry in status."""
    return {"benchmark_run": run, "progress": PoolProgress(step=step, message=message, because=because)}


def _of_history(pool: Pool) -> set[str]:
    """Runs that `rollback` may need: for each kept revision, the run on which it last served. The present revision's
    run is kept separately."""
    present = pool.remembered.serving.revision if pool.remembered.serving else ""
    latest = {change.revision: change.evidence.run for change in reversed(pool.remembered.history)}
    return {run for revision, run in latest.items() if revision in pool.kept and revision != present}


def _worth(run: Run) -> tuple[bool, str, str]:
    """Sort key: the least valuable run comes first."""
    return run.outcome is not None, run.completion_time, run.name
