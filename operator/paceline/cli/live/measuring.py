"""Shows a run that is being measured on this machine."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.api.run_status import BenchmarkRunStatus
from paceline.cli.live import searching
from paceline.cli.live.progress import Progress, cells, progress, rounds, spent, time_left
from paceline.cli.live.wording import marked, span_text
from paceline.core import Bounds, Purpose, RunSpec
from paceline.core.manifest import Object
from paceline.core.record import from_status
from paceline.measure.rounds import Moment
from paceline.report import build_report
from paceline.report.model import PROVISIONAL, CandidateView
from paceline.report.tables import searched_table, speed_ups

WIDTH = 40
"""Width of a bar in columns."""
RULERS = 6
"""Arms of a search that are drawn: the best of those that may win."""
_STEPS = (": ready after ", " tok/s")
"""Matches lines of the client which say that a server has started, or that a workload was measured."""


def drawn(moment: Moment, lines: Iterable[str], now: datetime, *, emulated: bool) -> RenderableType:
    """The run, its current round, and `lines` below: each candidate's interval so far."""
    name = Text(marked(moment.run["metadata"]["name"], emulated=emulated), style="bold")
    at = progress_view(moment, now)
    if at is None:
        return Group(name)
    bars = Table.grid(padding=(0, 1))
    if moment.plan is not None and moment.began is not None:
        done, total = steps(moment)
        since = span_text((now - moment.began).total_seconds())
        bars.add_row(rounds(at), ProgressBar(total=total, completed=done, width=WIDTH), f"{doing(moment)}, {since}")
    if at.search is not None:
        bars.add_row("search", cells(at), f"{time_left(at)}; {spent(at)}")
    else:
        bars.add_row("run", ProgressBar(total=at.looks[-1], completed=at.rounds, width=WIDTH), time_left(at))
        bars.add_row("gate", cells(at), spent(at))
    return Group(name, bars, *map(Text, lines))


def progress_view(moment: Moment, now: datetime) -> Progress | None:
    """The run's progress; None once it has ended."""
    job = ((moment.run.get("status") or {}).get("progress") or {}).get("job", "")
    return progress(moment.run, {job: moment.began} if moment.began else {}, now)


def steps(moment: Moment) -> tuple[int, int]:
    """The round's completed steps and all of its steps. Each server starts once and measures its workloads."""
    assert moment.plan
    done = sum(any(step in line for step in _STEPS) for line in moment.said)
    return done, sum(1 + len(moment.plan.workloads_of(arm)) for arm in moment.plan.arms)


def doing(moment: Moment) -> str:
    return moment.said[-1] if moment.said else "starting"


def intervals_so_far(run: Object) -> tuple[CandidateView, ...]:
    """The gate's candidates that have an interval; a Sweep or a Search compares with nothing."""
    (page,) = build_report([run]).runs
    return tuple(one for one in page.candidates if one.mean and page.asks)


def known_so_far(
    spec: RunSpec, run: Object, candidates: Sequence[CandidateView], *, going_on: bool = False
) -> Iterator[str]:
    """Results so far: the intervals of `candidates` in a comparison, the remaining arms in a search."""
    if spec.purpose is not Purpose.SEARCH:
        yield from intervals(candidates, 1 + spec.gate.min_improvement)
        return
    search = from_status(BenchmarkRunStatus, run.get("status")).search
    if search is not None:
        yield from rulers(dict(itertools.islice(searching.remaining_intervals(search).items(), RULERS)))
        yield from searching.standing_lines(search, going_on=going_on)


def intervals(candidates: Sequence[CandidateView], least: float) -> Iterator[str]:
    """Each candidate's ratio and its bounds on a ruler; then the requirement, and whether the intervals decide."""
    means = {one.name: one.mean.bounds for one in candidates if one.mean}
    if not means:
        return
    yield from rulers(means, least)
    margin = " " * (max(map(len, means)) + 2)
    yield f"{margin}a lower bound above {least:.2f} promotes; ┊ is 1.00, the baseline's speed"
    for reason in dict.fromkeys(one.reason for one in candidates if one.outcome == PROVISIONAL):
        yield f"{margin}provisional: {reason}"


def rulers(means: Mapping[str, Bounds], least: float = 1.0) -> Iterator[str]:
    if not means:
        return
    low = min(0.9, *(mean.lower for mean in means.values()))
    high = max(1.1, least, *(mean.upper for mean in means.values()))
    longest = max(map(len, means))
    for name, mean in means.items():
        ruler = _ruler(mean, math.log(max(low, 0.01)), math.log(min(high, 100.0)))
        yield f"{name:<{longest}}  {mean.ratio:.2f}x  {ruler}  {mean.lower:.2f} to {mean.upper:.2f} so far"


def _ruler(mean: Bounds, low: float, high: float) -> str:
    def column(value: float) -> int:
        at = (math.log(value) - low) / (high - low) if value > 0 else 0.0
        return min(WIDTH - 1, max(0, round(at * (WIDTH - 1))))

    drawn = [" "] * WIDTH
    first, last = column(mean.lower), column(mean.upper)
    drawn[first : last + 1] = "─" * (last - first + 1)
    drawn[column(1.0)] = "┊"
    drawn[first], drawn[last] = "├", "┤"
    drawn[column(mean.ratio)] = "●"
    return "".join(drawn)


def verdict_lines(run: Object) -> RenderableType:
    """The table of results, and the verdict's sentence."""
    page = build_report([run]).runs[0]
    found = searched_table(page.search) if page.search else speed_ups(page)
    drawn = Table(*found.head, box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(drawn.columns):
        column.overflow = "fold"  # a truncated number would be a wrong number
        column.justify = "left" if number < found.words else "right"
    for row in found.rows:
        drawn.add_row(*(f"{cell.text} ({cell.note})" if cell.note else cell.text for cell in row))
    sentence = Text(page.sentence, style="bold")
    return Group(drawn, "", sentence) if found.rows else sentence
