"""A one-word state of a deployment; and its Events: one for each change between two statuses, in the past tense."""

from collections.abc import Iterable, Iterator

from paceline.api import Cause, Reason
from paceline.api.status import Condition, Hold, HoldReason, PoolProgress, PoolStatus, Target
from paceline.api.status import SpeculativeDeploymentStatus as Status
from paceline.core import BASELINE
from paceline.plan.deployment.holds import BY_A_PERSON
from paceline.plan.deployment.incumbent import UNDONE
from paceline.plan.step import Event


def without_reconciling(causes: Iterable[Cause]) -> list[Cause]:
    """Drop Reconciling if Stalled is true: kstatus, Argo and Flux take both together for an error, and people take
    Reconciling for progress although they must act."""
    causes = list(causes)
    stalled = any(cause.reason.value.condition == "Stalled" for cause in causes)
    return [cause for cause in causes if not (stalled and cause.reason.value.condition == "Reconciling")]


def state(conditions: Iterable[Condition]) -> str:
    """The STATUS column: `Stalled:REASON` if Stalled is set, because a person must act; otherwise AwaitingPromote, or
    the reason of Ready."""
    by_type = {condition.type: condition for condition in conditions}
    if "Stalled" in by_type:
        return f"Stalled:{by_type['Stalled'].reason}"
    ready, waiting = by_type["Ready"], (by_type.get("Promoted"), by_type.get("ChangePending"))
    waits = any(one is not None and one.reason == Reason.AwaitingPromote.text for one in waiting)
    return Reason.AwaitingPromote.text if waits and ready.status == "True" else ready.reason


def transition_events(before: Status, after: Status) -> tuple[Event, ...]:
    topics = (_models, _notes, _stalled, _refused, _pools, _awaited, _pending)
    return tuple(event for topic in topics for event in topic(before, after))


def _models(before: Status, after: Status) -> Iterator[Event]:
    anew = before.volume != after.volume
    known = {(one.source, one.revision, one.commit) for one in before.artifacts}
    found = after.artifacts
    cached = [one for one in found if anew or (one.source, one.revision, one.commit) not in known]
    if after.volume and cached:
        note = ", ".join(f"{artifact.source} at {artifact.commit[:12]}" for artifact in cached)
        yield Event(reason="Cached", note=note)


def _notes(before: Status, after: Status) -> Iterator[Event]:
    """One Event for the new notes; a note that stays gets no other."""
    new = [note for note in after.notes if note not in before.notes]
    if new:
        yield Event(reason="Preflight", note="; ".join(new))


def _stalled(before: Status, after: Status) -> Iterator[Event]:
    was, now = _condition(before, "Stalled"), _condition(after, "Stalled")
    if now and (not was or was.message != now.message):
        yield Event(reason=now.reason, note=now.message, type="Warning")


def _awaited(before: Status, after: Status) -> Iterator[Event]:
    """A person must promote; the condition has the annotation to use."""
    waits = Reason.AwaitingPromote.text
    for kind in ("Promoted", "ChangePending"):
        was, now = _condition(before, kind), _condition(after, kind)
        if now and now.reason == waits and (not was or was.reason != waits):
            yield Event(reason=waits, note=now.message)


_EXPECTED = (Reason.ChangeCompared.text, Reason.ChangeWaits.text, Reason.AwaitingPromote.text)


def _pending(before: Status, after: Status) -> Iterator[Event]:
    """A changed spec is held back for another reason than before."""
    was, now = _condition(before, "ChangePending"), _condition(after, "ChangePending")
    if now and now.reason not in (*_EXPECTED, was and was.reason):
        yield Event(reason=f"Change{now.reason}", note=now.message, type="Warning")


def _refused(before: Status, after: Status) -> Iterator[Event]:
    for note in after.refused:
        if note not in before.refused:
            yield Event(reason="RequestRefused", note=note, type="Warning")


def _pools(before: Status, after: Status) -> Iterator[Event]:
    for entry in after.pools:
        was = next((one for one in before.pools if one.name == entry.name), PoolStatus(name=entry.name))
        yield from _retried(was, entry)
        yield from _aborted(was, entry)
        yield from _chosen(was, entry)
        yield from _degraded(was, entry)
        yield from _verdict(was, entry)
        yield from _holds(was, entry)
        yield from _target(was, entry)
        yield from _serving(was, entry)
        yield from _loan(was, entry)
        yield from _run(was, entry)


def _loan(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    """A server was lent to the pool's run, or was given back."""
    if entry.borrowed and entry.loan and not was.borrowed:
        yield Event(reason="Borrowed", note=f"{entry.name}: a server is given up so that {entry.loan.run} has room")
    elif was.borrowed and was.loan and not entry.borrowed:
        why = f"; no round of {was.loan.run} found room" if entry.loan and entry.loan.in_vain else ""
        yield Event(reason="GivenBack", note=f"{entry.name}: it gets back the server that was lent{why}")


def _run(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    """A run has begun. If an earlier verdict counts again, only the verdict has an Event."""
    progress, run = entry.progress or PoolProgress(), entry.benchmark_run
    if run and entry.attempts and run != was.benchmark_run and progress.step != "Decided":
        because = f": {progress.because}" if progress.because else ""
        note = f"{entry.name}: {run} compares the candidates with the baseline{because}"
        yield Event(reason="Measuring", note=note)


def _retried(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    token = entry.handled.retry if entry.handled else ""
    if not token or (was.handled and token == was.handled.retry):
        return
    anew = entry.retried
    done = [
        *(f"the hold ({held.reason}) is released" for held in was.holds if held not in entry.holds),
        *([f"another attempt follows attempt {anew.attempt}"] if anew and anew != was.retried else []),
    ]
    nothing = "nothing to do: there is no hold, and the last run did not end in Error or Inconclusive"
    yield Event(reason="Retried", note=f"{entry.name}: retry={token}: {' and '.join(done) or nothing}")


def _aborted(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    token = entry.handled.abort if entry.handled else ""
    if not token or (was.handled and token == was.handled.abort):
        return
    held = next((one for one in entry.holds if one.reason in BY_A_PERSON and one not in was.holds), None)
    nothing = "nothing to do: neither a run nor a candidate's roll-out is under way"
    if held is None:
        done = ""
    elif held.reason == "Aborted":
        done = f"{held.message}; retry continues"
    else:  # a rollback came in the same pass and was carried out first
        done = f"{held.request} came with it; {held.message}"
    yield Event(reason="Aborted", note=f"{entry.name}: abort={token}: {done or nothing}")


CHOSEN = {"promote": "Promoting", "rollback": "RolledBack", "promote_anyway": "PromotedAnyway"}
"""Requests that choose what to serve, by their field of `handled` → reason of the Event."""


def _chosen(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    for field, reason in CHOSEN.items():
        value = getattr(entry.handled, field, "")
        if value and value != getattr(was.handled, field, ""):
            target = entry.target
            asked = f"{field.replace('_', '-')}={value}"
            done = f"{target.arm} at {target.revision}: {target.message}" if target and target.request == asked else ""
            if done and field == "promote":
                continue  # _target reports it
            yield Event(reason=reason, note=f"{entry.name}: {asked}: {done or _nothing(field, value, target)}")


def _nothing(field: str, value: str, target: Target | None) -> str:
    """Why a request that chooses what to serve changed nothing."""
    if field == "rollback" and (target is None or target.revision != value.partition("@")[0]):
        return "nothing was done: no earlier revision that has served is kept"
    return "nothing to do: it is served already"


def _verdict(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    verdict = entry.verdict
    if verdict and not (was.verdict and verdict.evidence.run == was.verdict.evidence.run):
        note = f"{entry.name}: {verdict.outcome} ({verdict.evidence.run}): {verdict.message}"
        bad = verdict.outcome == "Error"
        yield Event(reason=f"Verdict{verdict.outcome}", note=note, type="Warning" if bad else "Normal")
        if crossing := verdict.crossing:
            yield Event(reason="ConcurrencyCrosses", note=f"{entry.name}: {crossing}", type="Warning")


def _degraded(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    """An Event for each new reason or revision, and one when speculation pays again. A fallback has a separate
    Event."""
    now, before = entry.degraded, was.degraded
    if now and (not before or (now.reason, now.revision) != (before.reason, before.revision)):
        note = f"{entry.name}: {now.reason}: {now.message}"
        yield Event(reason="SpeculationDegraded", note=note, type="Warning")
    still = entry.serving and before and entry.serving.revision == before.revision and not entry.holds
    if before and still and not now:
        yield Event(reason="SpeculationRecovered", note=f"{entry.name}: {before.reason} has ended")


def _holds(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    """An Event for each revision that has failed. A held baseline is Stalled instead, as long as the hold lasts; a
    person's request has a separate Event."""
    before = {(one.start_time, one.revision) for one in was.holds}
    others = [one.reason for one in entry.holds if one.reason in BY_A_PERSON]
    for held in entry.holds:
        known = (held.start_time, held.revision) in before
        if known or held.reason in BY_A_PERSON or (held.arm == BASELINE and not others):
            continue
        what = f"{held.arm or 'revision'} at {held.revision} is no longer served: {held.message}"
        stays = f"; the hold ({others[0]}) stays" if others else ""
        yield Event(reason=_fell(held.reason), note=f"{entry.name}: {what}{stays}", type="Warning")


def _fell(reason: HoldReason | None) -> str:
    """Reason of the Event."""
    return "FellBack" if reason == "Fallback" else reason or "NotReady"


def _target(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    target, before = entry.target, was.target
    if target and (not before or before.revision != target.revision):
        yield Event(
            reason=_roll_out(before, target, entry.holds),
            note=f"{entry.name}: {target.arm}, because {target.message}",
        )


def _roll_out(before: Target | None, target: Target, holds: Iterable[Hold]) -> str:
    if not before:
        return "Starting"
    if any(held.revision == before.revision for held in holds):
        return "RollingBack"
    if target.arm != BASELINE:
        return "Promoting"
    return "RollingBack" if before.arm != BASELINE else "RollingOut"


def _serving(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    serving, before = entry.serving, was.serving
    if serving and (not before or before.revision != serving.revision):
        promoted = serving.arm != BASELINE and not (entry.target and entry.target.reason in UNDONE)
        note = f"{entry.name}: {serving.arm} is served at revision {serving.revision}"
        yield Event(reason="Promoted" if promoted else "Serving", note=note)


def _condition(status: Status, kind: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == kind), None)
