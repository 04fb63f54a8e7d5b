"""How it stands in a word; and Events: what changed between two statuses, told once, in the past tense."""

from collections.abc import Iterable, Iterator

from paceline.api import Cause, Reason
from paceline.api.status import Condition, Hold, PoolProgress, PoolStatus, Target
from paceline.api.status import SpeculativeDeploymentStatus as Status
from paceline.core import BASELINE
from paceline.plan.deployment.measure import BEING_MADE
from paceline.plan.step import Event


def without_pretence(causes: Iterable[Cause]) -> list[Cause]:
    """Who waits for a person is not under way: Reconciling beside Stalled is what kstatus, Argo and Flux take for
    broken, and a person for progress."""
    causes = list(causes)
    stalled = any(cause.reason.value.condition == "Stalled" for cause in causes)
    return [cause for cause in causes if not (stalled and cause.reason.value.condition == "Reconciling")]


def state(conditions: Iterable[Condition]) -> str:
    """The column STATUS: what a person has to do something about comes first, then what Ready says."""
    said = {condition.type: condition for condition in conditions}
    if "Stalled" in said:
        return f"Stalled:{said['Stalled'].reason}"
    ready, promoted = said["Ready"], said.get("Promoted")
    waits = promoted is not None and promoted.reason == Reason.AwaitingPromote.text
    return Reason.AwaitingPromote.text if waits and ready.status == "True" else ready.reason


def events(before: Status, after: Status) -> tuple[Event, ...]:
    whole = (_models, _notes, _stalled, _refused, _pools, _awaited)
    return tuple(event for part in whole for event in part(before, after))


def _models(before: Status, after: Status) -> Iterator[Event]:
    new = after.models if before.models_hash != after.models_hash else ()
    brought = [*new, *(one for one in after.datasets if one not in before.datasets)]
    if brought:
        told = ", ".join(f"{one.source} at {one.commit[:12]}" for one in brought)
        yield Event(reason="Cached", note=told)


def _notes(before: Status, after: Status) -> Iterator[Event]:
    """What is worth knowing, each once for as long as it is so."""
    new = [note for note in after.notes if note not in before.notes]
    if new:
        yield Event(reason="Preflight", note="; ".join(new))


def _stalled(before: Status, after: Status) -> Iterator[Event]:
    was, now = _condition(before, "Stalled"), _condition(after, "Stalled")
    if now and (not was or was.message != now.message):
        yield Event(reason=now.reason, note=now.message, type="Warning")


def _awaited(before: Status, after: Status) -> Iterator[Event]:
    """A person is asked; the condition says by which annotation to answer."""
    was, now = _condition(before, "Promoted"), _condition(after, "Promoted")
    waits = Reason.AwaitingPromote.text
    if now and now.reason == waits and (not was or was.reason != waits):
        yield Event(reason=waits, note=now.message)


def _refused(before: Status, after: Status) -> Iterator[Event]:
    for note in after.refused:
        if note not in before.refused:
            yield Event(reason="RequestRefused", note=note, type="Warning")


def _pools(before: Status, after: Status) -> Iterator[Event]:
    remembered = {entry.name: entry for entry in before.pools}
    for entry in after.pools:
        was = remembered.get(entry.name, PoolStatus(name=entry.name))
        yield from _retried(was, entry)
        yield from _verdict(was, entry)
        yield from _hold(was, entry)
        yield from _target(was, entry)
        yield from _serving(was, entry)
        yield from _run(was, entry)


def _run(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    """Of a run that goes on. Where an old answer holds again nothing is compared: its verdict alone is told."""
    progress, before = entry.progress or PoolProgress(), was.progress or PoolProgress()
    run, why = progress.benchmark_run, progress.message
    if run and entry.attempts and run != before.benchmark_run and progress.step != "Decided":
        because = f": {why}" if why not in ("", BEING_MADE) and not why.startswith(run) else ""
        note = f"{entry.name}: {run} compares the candidates with the baseline{because}"
        yield Event(reason="Measuring", note=note)


def _retried(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    token = entry.handled.retry if entry.handled else ""
    if not token or (was.handled and token == was.handled.retry):
        return
    held, anew = was.hold, entry.retried
    done = [
        *([f"what was held ({held.reason}) is released"] if held and not entry.hold else []),
        *([f"attempt {anew.attempt} is followed by another"] if anew and anew != was.retried else []),
    ]
    nothing = "nothing to do: there is no hold, and the last run did not end in Error or Inconclusive"
    yield Event(reason="Retried", note=f"{entry.name}: retry={token}: {' and '.join(done) or nothing}")


def _verdict(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    verdict = entry.verdict
    if verdict and not (was.verdict and verdict.benchmark_run == was.verdict.benchmark_run):
        note = f"{entry.name}: {verdict.outcome} ({verdict.benchmark_run}): {verdict.message}"
        bad = verdict.outcome == "Error"
        yield Event(reason=f"Verdict{verdict.outcome}", note=note, type="Warning" if bad else "Normal")
        if crossing := verdict.crossing:
            yield Event(reason="ConcurrencyCrosses", note=f"{entry.name}: {crossing}", type="Warning")


def _hold(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    held, before = entry.hold, was.hold
    if not held or held.arm == BASELINE:  # of a baseline Stalled tells, and for as long as it is so
        return
    if not before or (held.since, held.revision) != (before.since, before.revision):
        what = f"{held.arm or 'revision'} at {held.revision} is taken off: {held.message}"
        yield Event(reason=held.reason or "NotReady", note=f"{entry.name}: {what}", type="Warning")


def _target(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    target, before = entry.target, was.target
    if target and (not before or before.revision != target.revision):
        yield Event(
            reason=_roll_out(before, target, entry.hold),
            note=f"{entry.name}: {target.arm}, because {target.why}",
        )


def _roll_out(before: Target | None, target: Target, held: Hold | None) -> str:
    if not before:
        return "Starting"
    if held and before.revision == held.revision:
        return "RollingBack"
    if target.arm != BASELINE:
        return "Promoting"
    return "RollingBack" if before.arm != BASELINE else "RollingOut"


def _serving(was: PoolStatus, entry: PoolStatus) -> Iterator[Event]:
    serving, before = entry.serving, was.serving
    if serving and (not before or before.revision != serving.revision):
        promoted = serving.arm != BASELINE
        note = f"{entry.name}: {serving.arm} is served at revision {serving.revision}"
        yield Event(reason="Promoted" if promoted else "Serving", note=note)


def _condition(status: Status, kind: str) -> Condition | None:
    return next((one for one in status.conditions if one.type == kind), None)
