"""How it stands in a word; and Events: what changed between two statuses, told once, in the past tense."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.api import Mark, Reason
from paceline.core import BASELINE
from paceline.plan.deployment.measure import BEING_MADE
from paceline.plan.terms import Happening


def without_pretence(marks: Iterable[Mark]) -> list[Mark]:
    """Who waits for a person is not under way: Reconciling beside Stalled is what kstatus, Argo and Flux take for
    broken, and a person for progress."""
    marks = list(marks)
    stalled = any(mark.reason.value.condition == "Stalled" for mark in marks)
    return [mark for mark in marks if not (stalled and mark.reason.value.condition == "Reconciling")]


def state(conditions: Iterable[Mapping[str, Any]]) -> str:
    """The column STATUS: what a person has to do something about comes first, then what Ready says."""
    said = {condition["type"]: condition for condition in conditions}
    if "Stalled" in said:
        return f"Stalled:{said['Stalled']['reason']}"
    waits = said.get("Promoted", {}).get("reason") == Reason.AwaitingPromote.text
    return Reason.AwaitingPromote.text if waits and said["Ready"]["status"] == "True" else str(said["Ready"]["reason"])


def happenings(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Happening, ...]:
    whole = (_models, _notes, _stalled, _refused, _pools, _awaited)
    return tuple(happening for part in whole for happening in part(before, after))


def _models(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    new = after.get("models", ()) if before.get("modelsHash") != after.get("modelsHash") else ()
    brought = [*new, *(one for one in after.get("datasets", ()) if one not in before.get("datasets", ()))]
    if brought:
        told = ", ".join(f"{one['source']} at {one['commit'][:12]}" for one in brought)
        yield Happening(reason="Cached", note=told)


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    """What is worth knowing, each once for as long as it is so."""
    new = [note for note in after.get("notes", ()) if note not in before.get("notes", ())]
    if new:
        yield Happening(reason="Preflight", note="; ".join(new))


def _stalled(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    was, now = _condition(before, "Stalled"), _condition(after, "Stalled")
    if now and (not was or was["message"] != now["message"]):
        yield Happening(reason=now["reason"], note=now["message"], type="Warning")


def _awaited(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    """A person is asked; the condition says by which annotation to answer."""
    was, now = _condition(before, "Promoted"), _condition(after, "Promoted")
    waits = Reason.AwaitingPromote.text
    if now and now["reason"] == waits and (not was or was["reason"] != waits):
        yield Happening(reason=waits, note=now["message"])


def _refused(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    for note in after.get("refused", ()):
        if note not in before.get("refused", ()):
            yield Happening(reason="RequestRefused", note=note, type="Warning")


def _pools(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Happening]:
    remembered = {entry["name"]: entry for entry in before.get("pools", ())}
    for entry in after.get("pools", ()):
        was = remembered.get(entry["name"], {})
        yield from _retried(was, entry)
        yield from _verdict(was, entry)
        yield from _hold(was, entry)
        yield from _target(was, entry)
        yield from _serving(was, entry)
        yield from _run(was, entry)


def _run(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    """Of a run that goes on. Where an old answer holds again nothing is compared: its verdict alone is told."""
    progress = entry.get("progress") or {}
    run, why = progress.get("benchmarkRun"), progress.get("message", "")
    known = run == (was.get("progress") or {}).get("benchmarkRun")
    if run and entry.get("attempts") and not known and progress.get("step") != "Decided":
        because = f": {why}" if why not in ("", BEING_MADE) and not why.startswith(run) else ""
        note = f"{entry['name']}: {run} compares the candidates with the baseline{because}"
        yield Happening(reason="Measuring", note=note)


def _retried(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    token = (entry.get("handled") or {}).get("retry")
    if token is None or token == (was.get("handled") or {}).get("retry"):
        return
    held, anew = was.get("hold"), entry.get("retried")
    done = [
        *([f"what was held ({held['reason']}) is released"] if held and not entry.get("hold") else []),
        *([f"attempt {anew['attempt']} is followed by another"] if anew and anew != was.get("retried") else []),
    ]
    nothing = "nothing to do: there is no hold, and the last run did not end in Error or Inconclusive"
    yield Happening(reason="Retried", note=f"{entry['name']}: retry={token}: {' and '.join(done) or nothing}")


def _verdict(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    verdict = entry.get("verdict")
    if verdict and verdict.get("benchmarkRun") != (was.get("verdict") or {}).get("benchmarkRun"):
        note = f"{entry['name']}: {verdict['outcome']} ({verdict['benchmarkRun']}): {verdict.get('message', '')}"
        bad = verdict["outcome"] == "Error"
        yield Happening(reason=f"Verdict{verdict['outcome']}", note=note, type="Warning" if bad else "Normal")
        if crossing := verdict.get("crossing"):
            yield Happening(reason="ConcurrencyCrosses", note=f"{entry['name']}: {crossing}", type="Warning")


def _hold(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    held, before = entry.get("hold"), was.get("hold") or {}
    if not held or held.get("arm") == BASELINE:  # of a baseline Stalled tells, and for as long as it is so
        return
    if (held["since"], held["revision"]) != (before.get("since"), before.get("revision")):
        what = f"{held.get('arm', 'revision')} at {held['revision']} is taken off: {held.get('message', '')}"
        yield Happening(reason=held["reason"], note=f"{entry['name']}: {what}", type="Warning")


def _target(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    target, before = entry.get("target"), was.get("target")
    if target and (not before or before["revision"] != target["revision"]):
        yield Happening(
            reason=_roll_out(before, target, entry.get("hold") or {}),
            note=f"{entry['name']}: {target['arm']}, because {target['why']}",
        )


def _roll_out(before: Mapping[str, Any] | None, target: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    if not before:
        return "Starting"
    if before["revision"] == held.get("revision"):
        return "RollingBack"
    if target["arm"] != BASELINE:
        return "Promoting"
    return "RollingBack" if before["arm"] != BASELINE else "RollingOut"


def _serving(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Happening]:
    serving, before = entry.get("serving"), was.get("serving")
    if serving and (not before or before["revision"] != serving["revision"]):
        promoted = serving["arm"] != BASELINE
        note = f"{entry['name']}: {serving['arm']} is served at revision {serving['revision']}"
        yield Happening(reason="Promoted" if promoted else "Serving", note=note)


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), None)
