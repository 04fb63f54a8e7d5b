"""A deployment as a tree: for each pool what serves, its evidence, what is in progress, and what a person can do."""

from collections.abc import Callable, Iterator
from datetime import datetime

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from paceline.api.status import Condition
from paceline.cli.live.advice import advice
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.progress import cells, rounds, spent, time_left
from paceline.cli.live.searching import standing_lines
from paceline.cli.live.table import change_line
from paceline.cli.live.wording import faster, hold_text, marked, since_text, span_text, time_of
from paceline.core.text import count

GOOD, BUSY, BAD, FAINT = "green", "yellow", "red", "dim"

AT_REST = {("Ready", "Serving"), ("CacheReady", "Cached")}
"""Conditions and reasons that are not worth showing."""
OF_POOLS = ("Measuring", "Decided", "Promoted", "ChangePending", "SpeculationDegraded")
"""Conditions that the pools' lines show in more detail."""

_IDLE = {"Suspended": "suspended: spec.suspend is set"}
"""Step of a pool without a message → its meaning."""
_PATIENCE = 120
"""Seconds without roll-out progress before the tree mentions it."""
TAIL = 3
"""Changes that the tree shows."""
_LABEL = 9
"""Characters of the longest label."""


def tree(deployment: ObservedDeployment, now: datetime) -> Tree:
    root = Tree(_title(deployment), guide_style=FAINT)
    for line in _general(deployment, now):
        root.add(line)
    for pool in deployment.pools:
        branch = root.add(Text(pool.name, style="bold"))
        for label, say in _PARTS.items():
            if lines := tuple(say(deployment, pool, now)):
                branch.add(_part(label, *lines))
    return root


def _title(deployment: ObservedDeployment) -> Text:
    state = deployment.status.state or "no status yet"
    where = f"{deployment.namespace}/{deployment.name}"
    return Text.assemble((where, "bold"), "  ", (state, _style_of(deployment)), "  ", deployment.status.summary)


def _style_of(deployment: ObservedDeployment) -> str:
    ready = deployment.condition("Ready")
    if deployment.condition("Stalled"):
        return BAD
    return GOOD if ready and ready.status == "True" else BUSY


def _part(label: str, *lines: tuple[str, str]) -> Table:
    """Lines of text and style next to their label; long lines wrap below themselves."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(min_width=_LABEL, style=FAINT)
    grid.add_column()
    for number, (text, style) in enumerate(lines):
        grid.add_row("" if number else label, Text(text, style=style))
    return grid


def _general(deployment: ObservedDeployment, now: datetime) -> Iterator[Table]:
    """The lines that concern all pools."""
    status = deployment.status
    if not deployment.stored:
        yield _part("operator", ("it has written no status yet; is it running?", BUSY))
    elif not deployment.seen:
        seen = f"this status is for generation {status.observed_generation or 0}"
        yield _part("operator", (f"{seen}; generation {deployment.generation} is not read yet", BUSY))
    if deployment.suspended:
        yield _part("suspended", ("spec.suspend is set: nothing is measured or promoted until it is removed", BUSY))
    told: set[str] = set()
    for condition in status.conditions:
        rests = condition.type in OF_POOLS or (condition.type, condition.reason) in AT_REST
        if not rests and condition.message not in told:
            text = f"{condition.type} {condition.reason}: {condition.message}; {_age(condition, now)}"
            yield _part("condition", (text, _colour(condition)))
        told.add(condition.message)
    if status.refused:
        yield _part("refused", *((text, BAD) for text in status.refused))
    if status.notes:
        yield _part("notes", *((text, "") for text in status.notes))


def _age(condition: Condition, now: datetime) -> str:
    return since_text(condition.last_transition_time, now)


def _colour(condition: Condition) -> str:
    if condition.type == "Stalled":
        return BAD
    return BUSY if condition.status != "True" or condition.type == "Reconciling" else ""


# The lines of a pool.

Lines = Iterator[tuple[str, str]]
"""Pairs of text and style."""


def _serves(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    serving, ready = pool.status.serving, pool.status.ready_replicas or 0
    asked = f"{ready} of {pool.asked} servers ready" if pool.asked is not None else f"{count(ready, 'server')} ready"
    if serving is None or not serving.revision:
        yield f"nothing yet; {asked}", BUSY
        return
    evidence = serving.evidence
    emulated = evidence.run in pool.emulated
    speed = marked(faster(evidence.speedup), emulated=emulated, imported=evidence.imported)
    arm = " ".join(filter(None, (serving.arm, speed)))
    style = GOOD if pool.asked is None or ready >= pool.asked else BUSY
    yield f"{arm} at {serving.revision}, since {since_text(serving.start_time, now)}; {asked}", style
    if evidence.run:
        yield f"on the evidence of {evidence.run}", ""


def _target(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    target, serving = pool.status.target, pool.status.serving
    if target and not (serving and serving.revision == target.revision):
        yield f"{target.arm} at {target.revision}, because {target.message}", BUSY
        if (moved := time_of(target.stands_since)) and (stood := (now - moved).total_seconds()) >= _PATIENCE:
            yield f"no progress for {span_text(stood)}", BUSY


def _run(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    progress, step = pool.progress, pool.status.progress
    if progress is None:
        if step and step.step != "Decided":
            yield step.message or _IDLE.get(step.step, step.step), BUSY
        return
    yield progress.run, ""
    yield f"{cells(progress)} {rounds(progress)}", BUSY
    yield f"{time_left(progress)}; {spent(progress)}", ""
    if progress.search is not None:
        yield from ((line, "") for line in standing_lines(progress.search, going_on=progress.going_on))


def _verdict(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    verdict = pool.status.verdict
    if verdict:
        style = {"Promote": GOOD, "Reject": "", "Error": BAD}.get(verdict.outcome, BUSY)
        run = verdict.evidence.run
        by = marked(run, emulated=run in pool.emulated, imported=verdict.evidence.imported)
        yield f"{verdict.outcome}: {verdict.message}; by {by}", style
        if verdict.crossing:
            yield verdict.crossing, BUSY


def _degraded(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    if degraded := pool.status.degraded:
        yield f"{degraded.reason} since {since_text(degraded.since, now)}: {degraded.message}", BAD


def _lent(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    if pool.status.borrowed and (loan := pool.status.loan):
        yield f"{count(pool.status.borrowed, 'server')} to {loan.run} since {since_text(loan.since, now)}", BUSY


def _hold(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    for hold in pool.status.holds:
        yield f"{hold_text(hold)}: {hold.reason} since {since_text(hold.start_time, now)}: {hold.message}", BAD


def _next(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    if command := advice(deployment, pool):
        yield command, "bold"


def _history(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    """The latest changes; the current state is already above them."""
    for change in pool.status.history[:TAIL]:
        yield change_line(pool, change), FAINT


def _address(deployment: ObservedDeployment, pool: ObservedPool, now: datetime) -> Lines:
    if pool.status.endpoint:
        yield pool.status.endpoint, FAINT


BranchLines = Callable[[ObservedDeployment, ObservedPool, datetime], Lines]
_PARTS: dict[str, BranchLines] = {
    "serves": _serves,
    "target": _target,
    "degraded": _degraded,
    "lent": _lent,
    "run": _run,
    "verdict": _verdict,
    "hold": _hold,
    "you can": _next,
    "history": _history,
    "address": _address,
}
"""Label → lines, most important first."""
