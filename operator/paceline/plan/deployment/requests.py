"""Requests of people: annotations `VERB.paceline.dev/POOL: [REVISION]@TOKEN` of the SpeculativeDeployment.

    promote         choose what to serve, as far as verdicts allow
    promote-anyway  promote a candidate regardless of the verdict, without evidence (0043)
    abort           end the present run, or the present roll-out
    retry           release holds, and repeat a run without a decision
    rollback        go back to a revision that has served and whose rendering is kept, with its evidence

Each value is carried out once. It changes the pool's entry before any step, and `handled` records the value in the same
status, so a crashed operator has written both or neither.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.api.status import Change, ChangeReason, Handled, Hold, Retried, Serving, Target
from paceline.core import BASELINE
from paceline.engines.nodes import unmeasurable
from paceline.plan.deployment.choose import (
    ANYWAY,
    Choice,
    baseline,
    has_served,
    intent,
    manual,
    overridden,
    past,
    promoted_before,
    speedup_text,
    winner,
)
from paceline.plan.deployment.doubt import doubt
from paceline.plan.deployment.holds import (
    baseline_failure,
    failure,
    held_by_a_person,
    holds,
    released,
    way_out,
    with_person_hold,
)
from paceline.plan.deployment.incumbent import UNDONE
from paceline.plan.deployment.pool import Pool, remembering
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult, timestamp

DOMAIN = ".paceline.dev/"
REFUSED_WHILE_SUSPENDED = "nothing is promoted while spec.suspend is set; remove that first"
_LONGEST = 253
"""Characters of a value that count: the maximum of a run's `trigger.token`."""

StatusChange = Mapping[str, Any]
"""The effect of a request: new fields of the pool's entry; None removes one. Empty if there is nothing to do."""
RefusalText = str
"""Why a request cannot be carried out, and what to do. It is then not handled: each pass retries it until it succeeds
or is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str
    pool: str
    value: str

    def __str__(self) -> str:
        return f"{annotation(self.verb, self.pool)}={self.value}"

    @property
    def in_short(self) -> str:
        """The form in status, without the pool, because a pool's entry need not name it."""
        return f"{self.verb}={self.value}"

    @property
    def revision(self) -> str:
        """The part before the `@`; "" if the value has none."""
        return self.value.partition("@")[0] if "@" in self.value else ""


def annotation(verb: str, pool: str) -> str:
    return f"{verb}{DOMAIN}{pool}"


def requests_by_name(snapshot: Snapshot) -> tuple[Request, ...]:
    """All requests, by name; annotations with an empty value do not count."""
    parts = ((key.partition(DOMAIN), value) for key, value in sorted(snapshot.annotations.items()) if value)
    return tuple(
        Request(verb=verb, pool=pool, value=value[:_LONGEST])
        for (verb, domain, pool), value in parts
        if verb and domain
    )


def promote(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target, which also ends a hold RolledBack or Aborted; or why there is none, and the valid
    requests. Without a revision it means the verdict's winner. In Automatic mode it only undoes an earlier request by a
    person."""
    target, by_a_person = pool.remembered.target, held_by_a_person(pool)
    if not (manual(pool) or by_a_person or overridden(pool) or doubt(pool)):
        return "promotion.mode is Automatic, which serves every winner; remove the annotation, or set Manual"
    if pool.suspended:
        return REFUSED_WHILE_SUSPENDED
    named, shown = request.value.partition("@")[0], winner(pool)
    revision = named or (shown.revision if shown else "")
    if held := failure(pool, revision) or (None if by_a_person else baseline_failure(pool)):
        return f"{held.revision} is held: {held.reason}; release it by retry.paceline.dev/{pool.name}=TOKEN first"
    if target and revision == target.revision:
        return {}
    choices = {choice.revision: choice for choice in promotable(pool)}
    if revision in choices:
        chosen = {"target": intent(choices[revision], timestamp(now), request.in_short)}
        return {**chosen, **released(pool, by_people=True)} if by_a_person else chosen
    valid = " or ".join(f"{choice.revision}@TOKEN ({choice.arm})" for choice in choices.values())
    what = f"no arm of revision {revision} waits" if revision else "no winner waits"
    return f"{what} to be served; {f'write {valid}' if valid else _nothing_waits(pool)}"


def _nothing_waits(pool: Pool) -> str:
    anyway = f"{annotation('promote-anyway', pool.name)}=REVISION@TOKEN serves a candidate all the same"
    if pool.decided is None:
        return f"the present question has no verdict yet; wait for it, or {anyway}"
    return f"the verdict is {pool.decided.outcome}; {anyway}"


def promotable(pool: Pool) -> Iterator[Choice]:
    """Choices that a person may request now: the winner, and the baseline in place of something else. In Automatic mode
    with a winner the baseline is excluded, because the winner would replace it at once."""
    shown, by_a_person = winner(pool), held_by_a_person(pool)
    target = promoted_before(pool) or (pool.remembered.target if by_a_person else None)
    if shown and not (failure(pool, shown.revision) or (target and target.revision == shown.revision)):
        yield shown
    to_baseline = target is not None and not pool.incumbent and target.revision != pool.revision(pool.arms[BASELINE])
    if to_baseline and (manual(pool) or shown is None):
        yield baseline(pool, "a person has requested it", "Demoted")


def promote_anyway(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target; or why there is none. Without a revision it means the only candidate. The baseline of a
    changed spec that does not serve yet may be promoted, too: that lets the change through. It works while suspended:
    a fix may not wait until the operator goes on."""
    named, target = request.value.partition("@")[0], pool.remembered.target
    changed = pool.incumbent or (pool.suspended and target and target.revision not in pool.rendered)
    candidates = {pool.revision(arm): arm for arm in pool.spec.arms[0 if changed else 1 :]}
    only = pool.spec.arms[1:]
    revision = named or (pool.revision(only[0]) if len(only) == 1 else "")
    if revision not in candidates:
        valid = " or ".join(f"{one}@TOKEN ({arm.name})" for one, arm in candidates.items())
        return f"{f'no candidate has revision {named}' if named else 'it names no candidate'}; write {valid}"
    held = failure(pool, revision)
    if held and held.reason == "Fallback":  # the candidate runs, it only stopped paying
        held = None
    if held := held or baseline_failure(pool):
        return f"{held.revision} is held: {held.reason}: {held.message}; {way_out(pool)}, then ask again"
    without = released(pool, revision, by_people=True)
    if target and target.revision == revision:
        if target.reason != ANYWAY:
            return {}
        return {"target": replace(target, fingerprint=_fingerprint(pool), request=request.in_short)}
    if (shown := winner(pool)) and shown.revision == revision:
        return {**without, "target": intent(shown, timestamp(now), request.in_short)}
    chosen = Target(
        revision=revision,
        arm=candidates[revision].name,
        message="; ".join(_why(pool, candidates[revision].name)),
        start_time=timestamp(now),
        reason=ANYWAY,
        request=request.in_short,
        fingerprint=_fingerprint(pool),
    )
    return {**without, "target": chosen}


def _fingerprint(pool: Pool) -> str:
    """Fingerprint of the overridden verdict; without a verdict, of the coming one."""
    return pool.decided.fingerprint if pool.decided else pool.fingerprint


def _why(pool: Pool, arm: str) -> Iterator[str]:
    run = pool.decided
    if run is None:
        yield "a person has promoted it without a verdict"
        return
    yield f"a person has promoted it against {run.name}: {run.outcome}"
    if (speed := run.ratio(arm)) and speed.ratio is not None:
        yield f"{arm} was {speedup_text(speed)} as fast as the baseline"


def abort(pool: Pool, request: Request, now: datetime) -> StatusChange:
    """Hold the question: `stop_runs` then ends its run, and no other is created. What is being rolled out is replaced
    by what served before. With nothing under way the request still counts as handled, so that it does not end the next
    run."""
    rolling = _rolled_out(pool)
    if rolling is None and not _asks(pool):
        return {}
    held = Hold(
        reason="Aborted",
        request=request.in_short,
        message=f"a person stopped the roll-out of {rolling.arm}" if rolling else "a person stopped the run",
        start_time=timestamp(now),
        revision=rolling.revision if rolling else "",
        arm=rolling.arm if rolling else "",
        run=rolling.evidence.run if rolling else "",
        fingerprint=pool.last_asked(rolling.fingerprint if rolling else ""),
    )
    effect: dict[str, Any] = {"holds": with_person_hold(pool, held)}
    return {**effect, "target": _before(pool, rolling, request, now)} if rolling else effect


def _rolled_out(pool: Pool) -> Target | None:
    """What is being rolled out: a candidate, or the baseline of a changed spec that was accepted or let through. A
    return to a previous revision does not count: the other one does not run, or a person rolled it back."""
    target = pool.remembered.target
    if target is None or target.reason in UNDONE or has_served(pool, target.revision):
        return None
    return target if target.arm != BASELINE or target.reason == ANYWAY or target.evidence.run else None


def _asks(pool: Pool) -> bool:
    """Whether a question is open for a present or future run, which may still wait for accelerators or prompts."""
    if held_by_a_person(pool) or baseline_failure(pool):
        return False
    open_ = pool.decided is None and not unmeasurable(pool.server)
    return open_ or any(run.under_way for run in pool.runs)


def _before(pool: Pool, rolling: Target, request: Request, now: datetime) -> Target:
    """The target before the roll-out; else the baseline."""
    last, why = pool.remembered.serving, f"a person stopped the roll-out of {rolling.arm}"
    if last is None or last.revision == rolling.revision or last.revision not in pool.kept:
        return intent(baseline(pool, why, "Aborted"), timestamp(now), request.in_short)
    return _back_to(last, "Aborted", f"{why}, and {last.arm} served before", request, now)


def _back_to(served: Serving | Change, reason: ChangeReason, message: str, request: Request, now: datetime) -> Target:
    """A revision that served before, with the evidence on which it served."""
    return Target(
        revision=served.revision,
        arm=served.arm,
        evidence=served.evidence,
        start_time=timestamp(now),
        message=message,
        reason=reason,
        request=request.in_short,
    )


_UNDECIDED = ("Error", "Inconclusive")
"""Outcomes that a person may ask to repeat: they decide nothing."""


def retry(pool: Pool, request: Request, _: datetime) -> StatusChange:
    """Release every hold, and repeat a run without a decision. Without either, the request still counts as handled."""
    without = released(pool) if holds(pool) else {}
    last = _to_repeat(pool)
    if last is None:
        return without
    return {**without, "retried": Retried(question=pool.question, attempt=last, token=request.value)}


def _to_repeat(pool: Pool) -> int | None:
    """The attempt at the present question that had no decision or was aborted. Its rounds are not reused: a person who
    asks for a repetition doubts them."""
    if pool.decided:
        return pool.decided.attempt if pool.decided.outcome in _UNDECIDED else None
    held = held_by_a_person(pool)
    aborted = held is not None and held.reason == "Aborted" and pool.attempts
    return pool.attempts[0].attempt if aborted else None


def rollback(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target, and a hold on the present one; or why there is none, and the valid choices. Without a
    revision it means the one served before the present one, except those rolled back from, not running or no longer
    paying. It works while suspended: `suspend` stops the operator, not a rollback. If there is no revision to return
    to, only a named revision is refused; without one the request counts as handled, so that it does not undo the next
    promotion."""
    present, choices = pool.remembered.target, _to_be_had(pool)
    # A token may be any word, so without `@` only a known revision counts as a revision.
    known = {*pool.kept, *choices, present.revision if present else ""}
    named = request.revision or (request.value if request.value in known else "")
    if present is None:
        return "nothing is served yet; remove the annotation" if named else {}
    if named == present.revision:
        return {}
    if held := failure(pool, named):
        return f"{named} is held: {held.reason}: {held.message}; release it by retry.paceline.dev/{pool.name}=TOKEN"
    left = {one.revision for one in holds(pool)}
    revision = named or next((one for one in choices if one not in left), "")
    if not revision:
        return {}
    if revision not in choices:
        return _refusal(pool, named, choices)
    back = choices[revision]
    message = f"a person has rolled back from {present.arm}; {_evidence(back)}"
    target = _back_to(back, "RolledBack", message, request, now)
    return {"target": target, "holds": with_person_hold(pool, _hold(pool, present, request, now))}


def _hold(pool: Pool, present: Target, request: Request, now: datetime) -> Hold:
    return Hold(
        reason="RolledBack",
        request=request.in_short,
        message=f"a person has rolled back from {present.arm} at {present.revision}",
        start_time=timestamp(now),
        revision=present.revision,
        arm=present.arm,
        run=present.evidence.run,
        fingerprint=pool.last_asked(present.fingerprint),
    )


def _to_be_had(pool: Pool) -> Mapping[str, Change]:
    """Revision → when it last served, latest first; only kept revisions without a known failure."""
    present = pool.remembered.target
    choices: dict[str, Change] = {}
    for change in past(pool):
        fit = change.revision in pool.kept and not failure(pool, change.revision)
        if fit and not (present and change.revision == present.revision):
            choices.setdefault(change.revision, change)
    return choices


def _refusal(pool: Pool, named: str, choices: Mapping[str, Change]) -> RefusalText:
    limit = pool.deployment.promotion.revision_history_limit
    kept = f"(promotion.revisionHistoryLimit is {limit})"
    valid = " or ".join(f"{change.revision}@TOKEN ({change.arm}; {_evidence(change)})" for change in choices.values())
    what = f"revision {named} has not served here, or is no longer kept {kept}"
    return f"{what}; {f'write {valid}' if valid else 'no other revision that has served is kept'}"


def _evidence(change: Change) -> str:
    if not change.evidence.run:
        return "no evidence is needed" if change.arm == BASELINE else "there is no evidence"
    speedup = f" ({change.evidence.speedup:.2f}x)" if change.evidence.speedup else ""
    return f"its evidence is {change.evidence.run}{speedup}"


VERBS: Mapping[str, Callable[[Pool, Request, datetime], StatusChange | RefusalText]] = {
    "promote": promote,
    "promote-anyway": promote_anyway,
    "abort": abort,
    "retry": retry,
    "rollback": rollback,
}


def carry_out(pool: Pool, now: datetime) -> tuple[Pool, tuple[str, ...]]:
    """The pool with its requests applied to its entry, and why other requests cannot be carried out."""
    refused = []
    for request in requests_by_name(pool.snapshot):
        if request.pool != pool.name or request.verb not in VERBS:
            continue
        if _is_handled(request, pool.remembered.handled):
            continue
        handled, name = pool.remembered.handled or Handled(), _field(request)
        effect = VERBS[request.verb](pool, request, now)
        if isinstance(effect, RefusalText):
            refused.append(f"{request}: {effect}")
            continue
        remembered = replace(pool.remembered, handled=replace(handled, **{name: request.value}), **effect)
        pool = replace(remembering(pool, remembered), asked=request.in_short if effect else pool.asked)
    return pool, tuple(refused)


def waiting_requests(snapshot: Snapshot, pool: str, results: Iterable[StepResult]) -> tuple[str, ...]:
    """Requests to a pool that one of the deployment's steps blocks, with the reason."""
    blocking = (result for result in results if result.blocks or pool in result.blocked_pools)
    causes = [cause for result in blocking for cause in result.causes]
    condition = f"{causes[0].reason.value.condition} ({causes[0].reason.text})" if causes else "the download"
    handled = snapshot.remembered(pool).handled
    return tuple(
        f"{request}: it waits until {condition} ends"
        for request in requests_by_name(snapshot)
        if request.verb in VERBS and request.pool == pool and not _is_handled(request, handled)
    )


def unknown_requests(snapshot: Snapshot) -> tuple[str, ...]:
    """Why requests to an unknown pool, or with an unknown verb, cannot be carried out."""
    if snapshot.spec is None:
        return ()
    pools = [pool.name for pool in snapshot.spec.pools]
    return tuple(
        f"{request}: pool {request.pool} does not exist (there are: {', '.join(pools)}); remove it"
        if request.verb in VERBS
        else f"{request}: {request.verb} is not a request (there are: {', '.join(VERBS)}); remove it"
        for request in requests_by_name(snapshot)
        if request.verb not in VERBS or request.pool not in pools
        if not _is_handled(request, snapshot.remembered(request.pool).handled)
    )


def _is_handled(request: Request, handled: Handled | None) -> bool:
    return getattr(handled, _field(request), "") == request.value


def _field(request: Request) -> str:
    """The verb's field in `handled`."""
    return request.verb.replace("-", "_")
