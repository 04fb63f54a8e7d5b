"""Explains in one paragraph why a pool serves its revision: since when, on which evidence, and what would change it."""

from collections.abc import Callable, Iterator
from datetime import datetime

from paceline import api
from paceline.api.status import Hold, PoolVerdict, ServingEvidence
from paceline.cli.live.advice import UNDECIDED_OUTCOMES, advice, asked_to_promote
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.progress import rounds, time_left
from paceline.cli.live.searching import standing_clause
from paceline.cli.live.wording import faster, hold_text, marked, since_text
from paceline.cli.validate import wrong
from paceline.core import BASELINE, by_server
from paceline.core.record import finite
from paceline.core.text import count
from paceline.engines import ENGINES, known_problems
from paceline.plan.deployment.holds import BY_A_PERSON
from paceline.report.text import capital

Sentences = Iterator[str]


def paragraph(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> str:
    """`now` is None for a page: it is read at any time, and shows the evidence and the advice elsewhere."""
    serving, target = pool.status.serving, pool.status.target
    by_evidence = serving and target and not target.request and target.message.startswith(f"{serving.evidence.run}: ")
    left_out = () if now else (_evidence, _change, _chosen) if by_evidence else (_evidence, _change)
    return " ".join(sentence for say in SAID if say not in left_out for sentence in say(deployment, pool, now))


def _unread(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    if not deployment.stored:
        yield f"The operator has written no status of {deployment.name} yet: is it running?"
    elif not deployment.seen:
        yield f"Generation {deployment.generation} of the spec is not read yet; this status is for an earlier one."


def _stalled(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    stalled = deployment.condition("Stalled")
    if stalled:
        yield f"A person must act ({stalled.reason}): {stalled.message}."


def _serves(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    serving = pool.status.serving
    if serving is None or not serving.revision:
        yield f"{pool.name} has not served anything yet{_not_ready(deployment)}."
    else:
        since = since_text(serving.start_time, now)
        yield f"{pool.name} serves {serving.arm} (revision {serving.revision}) since {since}."


def _chosen(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    serving, target = pool.status.serving, pool.status.target
    if serving and serving.revision and target and target.revision == serving.revision and target.message:
        asked = f", as asked for by {target.request}" if target.request else ""
        yield f"It was chosen because {target.message.removeprefix(f'{serving.evidence.run}: ')}{asked}."


def _to_come(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    serving, target = pool.status.serving, pool.status.target
    if serving and serving.revision and pool.asked and not pool.status.ready_replicas:
        yield f"None of its servers is ready{_not_ready(deployment)}."
    if target and not (serving and serving.revision == target.revision):
        yield f"It will serve {target.arm} (revision {target.revision}), because {target.message}."


def _not_ready(deployment: ObservedDeployment) -> str:
    ready = deployment.condition("Ready")
    return f": {ready.message}" if ready and ready.status != "True" else ""


def _evidence(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    serving, verdict = pool.status.serving, pool.status.verdict
    evidence = serving.evidence if serving else ServingEvidence()
    if evidence.run:
        speed = f", {faster(evidence.speedup)} the baseline's throughput" if finite(evidence.speedup) else ""
        yield f"Its evidence is {evidence.run}{speed}{_interval(evidence.run, verdict)}."
        if evidence.run in pool.emulated:
            yield "That run was emulated: no model ran, and its numbers are not measurements."
        if evidence.imported:
            yield "Rounds of it were measured without a cluster, and applied by a person."


def _verdict(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    serving, verdict = pool.status.serving, pool.status.verdict
    if verdict and not (serving and serving.evidence.run == verdict.evidence.run):
        name = verdict.evidence.run
        run = marked(name, emulated=name in pool.emulated, imported=verdict.evidence.imported)
        question = "the present question" if deployment.judged else "an earlier spec"
        yield f"The verdict on {question} is {verdict.outcome}, by {run}: {verdict.message}."


def _interval(evidence: str, verdict: PoolVerdict | None) -> str:
    if verdict is None or verdict.evidence.run != evidence:
        return ""
    lower, upper = finite(verdict.lower), finite(verdict.upper)
    return f" ({lower:.2f}–{upper:.2f})" if lower is not None and upper is not None else ""


def _pending(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    if pending := pool.condition("ChangePending"):
        yield f"A changed spec does not serve yet ({pending.reason}): {pending.message}."


def _degraded(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    if degraded := pool.status.degraded:
        yield f"Since {since_text(degraded.since, now)} speculation does not pay as measured: {degraded.message}."
    if pool.status.borrowed and (loan := pool.status.loan):
        yield f"{capital(count(pool.status.borrowed, 'server'))} of it is lent to {loan.run}, until that has measured."


def _held(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    for hold in pool.status.holds:
        yield f"On hold: {hold_text(hold)} ({hold.reason}) since {since_text(hold.start_time, now)}: {hold.message}."


# What would change it.


def _change(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    yield from next(found for ask in CHANGES if (found := tuple(ask(deployment, pool))))


def _suspended(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    if deployment.suspended:
        yield "spec.suspend is set: nothing is measured or rolled out until it is removed."


def _measuring(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    progress = pool.progress
    if progress:
        yield f"{progress.run} {'waits' if progress.waits else 'measures'} ({rounds(progress)}; {time_left(progress)})."
        if progress.search is not None:
            yield f"It searches for the best candidate: {standing_clause(progress.search)}."
            yield "What it finds is then compared with the baseline by a gate; nothing is served on a search alone."
        elif deployment.manual:
            yield "A winner waits for a person: promotion.mode is Manual."
        else:
            pending = pool.condition("ChangePending")
            shows = "the changed spec not to be slower" if pending else "a candidate to be faster"
            yield f"If it shows {shows}, that one is served."


def _awaiting(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    if revision := asked_to_promote(pool):
        yield f"Revision {revision} waits for a person: {advice(deployment, pool)}."


def _released(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    for hold in pool.status.holds:
        yield f"The hold of {hold_text(hold)} ends with {_end_of(hold)}, or by {advice(deployment, pool)}."


def _end_of(hold: Hold) -> str:
    if hold.reason in BY_A_PERSON:
        return "another question"
    return "a spec that renders another server" if hold.arm == BASELINE else "another question, newer evidence"


def _not_decided(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    verdict = pool.status.verdict
    if verdict and verdict.outcome in UNDECIDED_OUTCOMES:
        yield f"Another spec, or another attempt, may decide it: {advice(deployment, pool)}."


def _decided(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    serving = pool.status.serving
    if pool.status.verdict and serving and serving.arm != BASELINE:
        yield (
            "Another head, image or arguments are compared with it first, another target or accelerator is served at "
            "once; a server that does not run, or a verdict that rejects it, takes it off."
        )
    elif pool.status.verdict:
        yield "Another candidate, target, image or gate in the spec is a new question, and is measured."


def _waiting(deployment: ObservedDeployment, pool: ObservedPool) -> Sentences:
    step = pool.status.progress
    yield f"Nothing is measured yet{f': {step.message}' if step and step.message else ''}."


CHANGES: tuple[Callable[[ObservedDeployment, ObservedPool], Sentences], ...] = (
    _suspended,
    _measuring,
    _awaiting,
    _released,
    _not_decided,
    _decided,
    _waiting,
)
"""What may change next: the first of these that yields a sentence is used."""


def _known(deployment: ObservedDeployment, pool: ObservedPool, now: datetime | None) -> Sentences:
    """Known problems of the release; none for a spec that the API server would no longer accept."""
    if wrong(deployment.manifest):
        return
    spec = api.deployment(deployment.manifest)
    arms = next((one.arms for one in spec.pools if one.name == pool.name), ())
    for server, group in by_server(spec.server, arms):
        for problem in known_problems.found(ENGINES[server.engine.type].known_problems, server, group):
            yield f"A known problem of this release, {problem}."


SAID: tuple[Callable[[ObservedDeployment, ObservedPool, datetime | None], Sentences], ...] = (
    _unread,
    _stalled,
    _serves,
    _chosen,
    _to_come,
    _evidence,
    _verdict,
    _pending,
    _degraded,
    _held,
    _change,
    _known,
)
"""The parts of the paragraph, in order."""
