"""A deployment in the report: the content of `status`, `why`, `history` and `top`, with its runs' verdicts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from paceline.api.run_status import BenchmarkRunStatus
from paceline.api.status import Change, Condition, ServingEvidence
from paceline.cli.live.advice import advice
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.progress import cells, rounds, spent, time_left
from paceline.cli.live.searching import standing_lines
from paceline.cli.live.traffic import Speed, Traffic
from paceline.cli.live.why_text import paragraph
from paceline.cli.live.wording import hold_text, when
from paceline.core import BASELINE, Purpose, purpose_of
from paceline.core.manifest import Object
from paceline.core.record import finite, from_status
from paceline.core.text import count
from paceline.report import deployment_model as said
from paceline.report import read
from paceline.report.model import RunView

GOOD, BAD, OPEN = "good", "bad", "open"
FAVOURABLE = {"Ready": "True", "CacheReady": "True", "Reconciling": "False", "Stalled": "False"} | {
    "SpeculationDegraded": "False"
}
"""Condition → its status when all is well; the other conditions have no better state."""
NEEDS_SOMEBODY = ("Ready", "Stalled", "SpeculationDegraded")
"""Conditions that are trouble when they are not favourable."""
_TONES = {
    **dict.fromkeys(("Promoted", "PromotedAnyway"), GOOD),
    **dict.fromkeys(("Demoted", "TakenDown", "Fallback", "RolledBack", "Aborted", "Stopped"), BAD),
}


def page(
    deployment: ObservedDeployment,
    runs: Sequence[RunView],
    manifests: Sequence[Object],
    *,
    revisions: Collection[str] | None = None,
    traffic: Mapping[str, Traffic] | None = None,
    unread: str = "",
) -> said.DeploymentView:
    """`runs`: the report's views of `manifests`, the deployment's runs. `revisions`: those with a ControllerRevision,
    None if not known. `traffic` by pool; `unread`: why there is no traffic."""
    of_run = {run.name: (run, manifest) for run, manifest in zip(runs, manifests, strict=True)}

    def pool(each: ObservedPool) -> said.PoolView:
        mine = [pair for pair in of_run.values() if pair[1]["spec"]["pool"] == each.name]
        return _pool(deployment, each, mine, revisions, (traffic or {}).get(each.name), unread)

    return said.DeploymentView(
        name=deployment.name,
        namespace=deployment.namespace,
        state=deployment.status.state or "no status yet",
        tone=_tone(deployment),
        summary=deployment.status.summary,
        engine=" ".join(filter(None, (deployment.engine, deployment.version))),
        remarks=tuple(_remarks(deployment)),
        conditions=tuple(map(_condition, deployment.status.conditions)),
        pools=tuple(map(pool, deployment.pools)),
    )


def shown_runs(deployment: said.DeploymentView, names: Collection[str]) -> list[str]:
    """The runs that a deployment's page shows in full, in the order of its pools: each pool's evidence, the run that
    answers its question, and the run in progress."""
    asked = [
        name
        for pool in deployment.pools
        for name in (pool.evidence, pool.verdict, pool.under_way, pool.search)
        if name in names
    ]
    return list(dict.fromkeys(asked))


def _tone(deployment: ObservedDeployment) -> str:
    ready = deployment.condition("Ready")
    if any(one.type != "Ready" and _of_condition(one) == BAD for one in deployment.status.conditions):
        return BAD
    return GOOD if ready and ready.status == "True" else OPEN


def _remarks(deployment: ObservedDeployment) -> Iterator[str]:
    if not deployment.stored:
        yield "The operator has written no status yet: is it running?"
    elif not deployment.seen:
        seen = f"this status is for generation {deployment.status.observed_generation or 0}"
        yield f"Generation {deployment.generation} of the spec is not read yet: {seen}."
    if deployment.suspended:
        yield "spec.suspend is set: nothing is measured or promoted until it is removed."
    yield from (f"Refused: {text}" for text in deployment.status.refused)
    yield from deployment.status.notes


def _condition(one: Condition) -> said.ConditionRow:
    return said.ConditionRow(
        type=one.type,
        status=one.status,
        reason=one.reason,
        message=one.message,
        since=when(one.last_transition_time),
        tone=_of_condition(one),
    )


def _of_condition(one: Condition) -> str:
    if one.status == FAVOURABLE.get(one.type):
        return GOOD
    return BAD if one.type in NEEDS_SOMEBODY and one.status in ("True", "False") else OPEN


Pairs = Sequence[tuple[RunView, Object]]


def _pool(
    deployment: ObservedDeployment,
    pool: ObservedPool,
    runs: Pairs,
    revisions: Collection[str] | None,
    traffic: Traffic | None,
    unread: str,
) -> said.PoolView:
    serving, verdict, progress = pool.status.serving, pool.status.verdict, pool.progress
    evidence = serving.evidence if serving else ServingEvidence()
    answered = verdict is not None and verdict.evidence.run == evidence.run != ""
    searches = sorted(
        (m for _, m in runs if purpose_of(m["spec"]) is Purpose.SEARCH),
        key=lambda m: m["metadata"].get("creationTimestamp", ""),
    )
    return said.PoolView(
        name=pool.name,
        arm=serving.arm if serving else "",
        revision=serving.revision if serving else "",
        since=when(serving.start_time) if serving else "",
        speed_up=finite(evidence.speedup),
        bounds=read.ordered_bounds(verdict.evidence.speedup, verdict.lower, verdict.upper)
        if verdict and answered
        else None,
        emulated=_emulated(pool),
        imported=evidence.imported,
        ready=pool.status.ready_replicas or 0,
        asked=pool.asked,
        address=pool.status.endpoint,
        marks=tuple(_marks(pool)),
        says=paragraph(deployment, pool, None),
        advice=advice(deployment, pool),
        evidence=evidence.run,
        verdict=verdict.evidence.run if verdict else "",
        under_way=progress.run if progress else "",
        search=searches[-1]["metadata"]["name"] if searches else "",
        progress=tuple(_progress(pool)),
        guard=_guard(pool),
        rates=tuple(_rates(pool, traffic)) if traffic else (),
        unread=tuple(filter(None, (*(traffic.errors if traffic else ()), unread))),
        history=_history(pool, runs, revisions),
    )


def _emulated(pool: ObservedPool) -> bool:
    serving, verdict = pool.status.serving, pool.status.verdict
    named = {one.evidence.run for one in (serving, verdict) if one}
    return bool(named & pool.emulated) or bool(pool.progress and pool.progress.emulated)


def _marks(pool: ObservedPool) -> Iterator[tuple[str, str]]:
    if pool.status.degraded:
        yield "Degraded", BAD
    for hold in pool.status.holds:
        yield f"Held: {hold.reason or 'by a person'}", BAD
    if pool.progress:
        yield "Waiting" if pool.progress.waits else "Searching" if pool.progress.search else "Measuring", OPEN


def _progress(pool: ObservedPool) -> Iterator[str]:
    if (progress := pool.progress) is None:
        if (step := pool.status.progress) and step.step != "Decided" and step.message:
            yield step.message
        return
    yield f"{cells(progress)} {rounds(progress)}"
    yield f"{time_left(progress)}; {spent(progress)}"
    if progress.search is not None:
        yield from standing_lines(progress.search, going_on=progress.going_on)


def _guard(pool: ObservedPool) -> str:
    if degraded := pool.status.degraded:
        return f"{degraded.reason} since {when(degraded.since)}: {degraded.message}."
    watched = pool.condition("SpeculationDegraded")
    serving = pool.status.serving
    if watched is None or serving is None or serving.arm == BASELINE:
        return ""
    return f"{watched.reason}: {watched.message}." if watched.message else watched.reason


def _rates(pool: ObservedPool, traffic: Traffic) -> Iterator[said.Rates]:
    if traffic.now:
        yield _rate(f"now, mean of {count(traffic.servers, 'server')}", traffic.now, emulated=False)
    for one in traffic.measured:
        yield _rate(f"measured at {one.workload}", one.speed, emulated=traffic.emulated)


def _rate(of: str, speed: Speed, *, emulated: bool) -> said.Rates:
    return said.Rates(
        of=of,
        requests=speed.requests_under_way,
        tokens_per_second=speed.tokens_per_second,
        accept_length=speed.accept_length,
        ttft=speed.ttft_seconds,
        per_token=speed.itl_seconds,
        emulated=emulated,
    )


# The history.


def _history(pool: ObservedPool, runs: Pairs, revisions: Collection[str] | None) -> tuple[said.EventView, ...]:
    """The pool's events, newest first. Of events of the same time, consequences come first: a promotion above its
    verdict."""
    events = [event for tell in TOLD for event in tell(pool, runs)]
    known = [_kept(event, revisions) for event in events]
    return tuple(sorted(known, key=lambda event: event.time, reverse=True))


def _kept(event: said.EventView, revisions: Collection[str] | None) -> said.EventView:
    return event if revisions is None or not event.revision else replace(event, kept=event.revision in revisions)


def _changes(pool: ObservedPool, runs: Pairs) -> Iterator[said.EventView]:
    yield from (_change(pool, change) for change in pool.status.history)


def _change(pool: ObservedPool, change: Change) -> said.EventView:
    evidence = change.evidence
    return _event(
        change.time,
        change.reason or "Changed",
        arm=change.arm or "nothing",
        speed_up=finite(evidence.speedup),
        emulated=evidence.run in pool.emulated,
        imported=evidence.imported,
        why=change.message.removeprefix(f"{evidence.run}: "),
        run=evidence.run,
        revision=change.revision,
        request=change.request,
        tone=_TONES.get(change.reason or "", ""),
    )


def _holds(pool: ObservedPool, runs: Pairs) -> Iterator[said.EventView]:
    for hold in pool.status.holds:
        yield _event(
            hold.start_time,
            f"Held: {hold.reason or 'by a person'}",
            arm=hold.arm or hold_text(hold),
            why=hold.message,
            run=hold.run,
            revision=hold.revision,
            request=hold.request,
            tone=BAD,
        )


def _watched(pool: ObservedPool, runs: Pairs) -> Iterator[said.EventView]:
    if degraded := pool.status.degraded:
        arm = pool.status.serving.arm if pool.status.serving else ""
        yield _event(degraded.since, f"Degraded: {degraded.reason}", arm=arm, why=degraded.message, tone=BAD)


def _taken_down(pool: ObservedPool, runs: Pairs) -> Iterator[said.EventView]:
    """Takedowns that `history` does not record, because the earlier servers never stopped."""
    told = {change.revision for change in pool.status.history}
    for one in pool.status.taken_down:
        if one.revision not in told:
            times = f", {one.times} times" if (one.times or 1) > 1 else ""
            yield _event(one.since, f"Taken down: {one.reason}{times}", arm=one.arm, tone=BAD)


def _verdicts(pool: ObservedPool, runs: Pairs) -> Iterator[said.EventView]:
    """Verdicts of all ended runs, especially those that promoted nothing. The best ratio among many candidates is not a
    speed-up that a gate has shown."""
    for run, manifest in runs:
        status = from_status(BenchmarkRunStatus, manifest.get("status"))
        if not status.completion_time and run.outcome == "Measuring":
            continue
        ended = next((one.last_transition_time for one in status.conditions if one.status == "True"), "")
        kind = "search" if run.search else "verdict"
        yield _event(
            status.completion_time or ended,
            f"{kind} {run.outcome}",
            arm=run.winner,
            speed_up=run.speed_up.ratio if run.speed_up and not run.search else None,
            emulated=run.emulated,
            imported=status.imported,
            why=run.found,
            run=run.name,
            tone={"Promote": GOOD, "Found": GOOD, "Reject": BAD, "Error": BAD}.get(run.outcome, OPEN),
        )


def _event(
    time: str,
    what: str,
    *,
    arm: str = "",
    speed_up: float | None = None,
    emulated: bool = False,
    imported: bool = False,
    why: str = "",
    run: str = "",
    revision: str = "",
    request: str = "",
    tone: str = "",
) -> said.EventView:
    return said.EventView(
        time=time,
        when=when(time),
        what=what,
        arm=arm,
        speed_up=speed_up,
        emulated=emulated,
        imported=imported,
        why=why,
        run=run,
        revision=revision,
        kept=None,
        request=request,
        tone=tone,
    )


TOLD: tuple[Callable[[ObservedPool, Pairs], Iterator[said.EventView]], ...] = (
    _watched,
    _holds,
    _changes,
    _taken_down,
    _verdicts,
)
"""Later consequences first: events of the same second keep this order."""
