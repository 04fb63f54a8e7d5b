"""A run's progress: its rounds, the gate's looks, the remaining time, the GPU time so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.api.run_status import BenchmarkRunStatus, RunCost, RunProgress, SearchProgress
from paceline.cli.live.wording import gpu_hours, marked, span_text, time_of
from paceline.core import Purpose, purpose_of
from paceline.core.record import from_status
from paceline.core.text import count
from paceline.plan import objects
from paceline.report import read

_WAITS = ("WaitingForCapacity", "PodRefused", "Suspended")
"""Reasons of a run's condition Complete with which no round is in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of the current run. Times in seconds; None before the first round has ended and while the run waits."""

    run: str
    rounds: int
    """Measured rounds, including those reused from another run."""
    looks: tuple[int, ...]
    """After how many rounds the gate may decide; empty for a search, which has no looks."""
    going_on: bool
    """Whether a round is being measured now."""
    seconds_per_round: int | None
    seconds_to_next_look: int | None
    seconds_to_last_look: int | None
    gpu_seconds: int
    """Accelerators times seconds so far, including the current round."""
    emulated: bool
    waits: str
    """Why no round is in progress; empty if one is."""
    message: str
    seconds: int
    """Seconds since its first round began."""
    search: SearchProgress | None = None
    """The search's state; None for a run without one."""

    @property
    def next_look(self) -> int | None:
        """The next look; after the last look, that look again: it waits for repeats of a candidate's lost rounds."""
        return next((look for look in self.looks if look > self.rounds), self.looks[-1] if self.looks else None)


def progress(run: Mapping[str, Any], started: Mapping[str, datetime], now: datetime) -> Progress | None:
    """The run's progress; None once it has ended. `started`: Job of the current round → start of its pod."""
    status = from_status(BenchmarkRunStatus, run.get("status"))
    if objects.finished(run) or objects.superseded(run):
        return None
    at = status.progress or RunProgress()
    complete = next((condition for condition in status.conditions if condition.type == "Complete"), None)
    waits = (at.message or complete.message).rstrip(".") if complete and complete.reason in _WAITS else ""
    since = started.get(at.job) if at.job and not waits else None
    spent = max(0, round((now - since).total_seconds())) if since else 0
    searches = purpose_of(run["spec"]) is Purpose.SEARCH
    rounds, each, accelerator = at.round or 0, at.seconds_per_round, run["spec"]["accelerator"]
    looks = () if searches else read.gate(run["spec"]).decide_after_rounds
    last = looks[-1] if looks else rounds
    following = next((look for look in looks if look > rounds), last)
    known = not (waits or searches)
    began = time_of(status.start_time)
    return Progress(
        run=run["metadata"]["name"],
        rounds=rounds,
        looks=looks,
        going_on=bool(at.job) and not waits,
        seconds_per_round=each,
        seconds_to_next_look=_left(following - rounds, each, spent) if known else None,
        seconds_to_last_look=_left(last - rounds, each, spent) if known else None,
        gpu_seconds=((status.cost or RunCost()).gpu_seconds or 0) + spent * accelerator["count"],
        emulated=bool(status.emulated),
        waits=waits,
        message=at.message,
        seconds=max(0, round((now - began).total_seconds())) if began else 0,
        search=(status.search or SearchProgress()) if searches else None,
    )


def _left(rounds: int, each: int | None, spent: int) -> int | None:
    """Seconds that `rounds` will still take. A round that already took longer than the mean may end at any moment."""
    return None if each is None else max(0, rounds * each - min(spent, each))


# In words.


def rounds(progress: Progress) -> str:
    """The current position, like "round 2 of 3, 5 or 8". A search does not know how many rounds it needs."""
    done = count(progress.rounds, "round")
    if not progress.looks:
        return f"round {progress.rounds + 1} of a search" if progress.going_on else f"{done} searched"
    looks = [str(look) for look in progress.looks]
    of = f"{', '.join(looks[:-1])} or {looks[-1]}" if len(looks) > 1 else looks[0]
    return f"round {progress.rounds + 1} of {of}" if progress.going_on else f"{done} measured of {of}"


def cells(progress: Progress) -> str:
    """One cell per round, and a mark at each look of the gate: ■◧□|□□|□□□|."""
    drawn = []
    last = progress.looks[-1] if progress.looks else progress.rounds + progress.going_on
    for number in range(1, max(last, progress.rounds) + 1):
        under_way = number == progress.rounds + 1 and progress.going_on
        drawn.append("■" if number <= progress.rounds else "◧" if under_way else "□")
        drawn.append("|" if number in progress.looks else "")
    return "".join(drawn)


def time_left(progress: Progress) -> str:
    if progress.waits:
        return f"waits: {progress.waits}"
    if progress.search is not None:
        each = progress.seconds_per_round
        return f"a round takes about {span_text(each)}" if each else "the time per round is known after the first"
    soon, late = progress.seconds_to_next_look, progress.seconds_to_last_look
    if soon is None or late is None:
        return "the time left is known after the first round"
    least = f"about {span_text(soon)} to the look after round {progress.next_look}"
    return least if soon == late else f"{least}, {span_text(late)} if it goes to the last one"


def spent(progress: Progress) -> str:
    took = f"{span_text(progress.seconds)} and " if progress.search is not None and progress.seconds else ""
    return marked(f"{took}{gpu_hours(progress.gpu_seconds)} so far", emulated=progress.emulated)
