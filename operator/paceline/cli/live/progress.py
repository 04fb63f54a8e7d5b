"""How far a run is: its rounds, the looks of its gate, the time that it may still take, the GPU time so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus, Cost, RunProgress
from paceline.cli.live.words import gpu_hours, marked, span
from paceline.plan import objects
from paceline.report import read

WAITS = ("WaitingForCapacity", "PodRefused", "Suspended")
"""Reasons of a run's condition Complete for which no round goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of a run under way. Times in seconds, None before the first round has ended and while it waits."""

    run: str
    rounds: int
    """Measured so far, those that were taken over from another run included."""
    looks: tuple[int, ...]
    """After how many rounds the gate decides, if it can."""
    going_on: bool
    """Whether a round is being measured now."""
    seconds_per_round: int | None
    seconds_to_next_look: int | None
    seconds_to_last_look: int | None
    gpu_seconds: int
    """Accelerators times seconds so far, the round under way included."""
    emulated: bool
    waits: str
    """Why no round goes on; empty if one does."""
    message: str

    @property
    def next_look(self) -> int:
        """The last one stands for what comes after it: rounds that were lost for a candidate."""
        return next((look for look in self.looks if look > self.rounds), self.looks[-1])


def progress(run: Mapping[str, Any], started: Mapping[str, datetime], now: datetime) -> Progress | None:
    """None once it has ended. `started`: Job of a round under way → when its pod began."""
    status = from_status(BenchmarkRunStatus, run.get("status"))
    if objects.finished(run) or objects.superseded(run):
        return None
    at = status.progress or RunProgress()
    complete = next((condition for condition in status.conditions if condition.type == "Complete"), None)
    waits = (at.message or complete.message).rstrip(".") if complete and complete.reason in WAITS else ""
    since = started.get(at.job) if at.job and not waits else None
    spent = max(0, round((now - since).total_seconds())) if since else 0
    rounds, looks, each = at.round or 0, read.gate(run["spec"]).decide_after_rounds, at.seconds_per_round
    following = next((look for look in looks if look > rounds), looks[-1])
    accelerator = run["spec"]["accelerator"]
    return Progress(
        run=run["metadata"]["name"],
        rounds=rounds,
        looks=looks,
        going_on=bool(at.job) and not waits,
        seconds_per_round=each,
        seconds_to_next_look=_left(following - rounds, each, spent) if not waits else None,
        seconds_to_last_look=_left(looks[-1] - rounds, each, spent) if not waits else None,
        gpu_seconds=((status.cost or Cost()).gpu_seconds or 0) + spent * accelerator["count"],
        emulated=bool(status.emulated),
        waits=waits,
        message=at.message,
    )


def _left(rounds: int, each: int | None, spent: int) -> int | None:
    """A round that takes longer than the others before it may end at any moment."""
    return None if each is None else max(0, rounds * each - min(spent, each))


# In words.


def rounds(progress: Progress) -> str:
    """Where it is: round 2 of 3, 5 or 8."""
    looks = [str(look) for look in progress.looks]
    of = f"{', '.join(looks[:-1])} or {looks[-1]}" if len(looks) > 1 else looks[0]
    return f"round {progress.rounds + 1} of {of}" if progress.going_on else f"{progress.rounds} rounds measured of {of}"


def cells(progress: Progress) -> str:
    """A cell for each round, a mark where the gate looks: ■◧□|□□|□□□|."""
    drawn = []
    for number in range(1, max(progress.looks[-1], progress.rounds) + 1):
        under_way = number == progress.rounds + 1 and progress.going_on
        drawn.append("■" if number <= progress.rounds else "◧" if under_way else "□")
        drawn.append("|" if number in progress.looks else "")
    return "".join(drawn)


def time_left(progress: Progress) -> str:
    if progress.waits:
        return f"waits: {progress.waits}"
    soon, late = progress.seconds_to_next_look, progress.seconds_to_last_look
    if soon is None or late is None:
        return "the time left is known after the first round"
    least = f"about {span(soon)} to the look after round {progress.next_look}"
    return least if soon == late else f"{least}, {span(late)} if it goes to the last one"


def spent(progress: Progress) -> str:
    return marked(f"{gpu_hours(progress.gpu_seconds)} so far", emulated=progress.emulated)
