"""A pool of the example that was measured without a cluster, as `paceline measure` leaves it in its file."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tests.support.answers import Spoiled, Truth
from tests.support.campaigns import LATENCY
from tests.support.stories import measuring
from tests.support.world import World

from paceline.api.round import Round, rounds_of
from paceline.core.manifest import Manifest
from paceline.core.record import to_status
from paceline.evidence import fingerprint
from paceline.measure import record
from paceline.plan.simulation import reconciler
from paceline.plan.step import parse_time, timestamp

ALLOWED = replace(reconciler.SETTINGS, imported_evidence=True)
NAME = "qwen3-coder-next-latency-at-the-desk"
LATER = timedelta(days=1)
"""From the measurement until the file is applied."""
Change = Callable[[Round], Round]
SLOWER: Truth = {"baseline": LATENCY["baseline"], "wide": {name: 0.8 * of for name, of in LATENCY["baseline"].items()}}
NOTE = "measured on desk without a cluster"


def real(round: Round) -> Round:
    """The stories' answers are those of an emulator."""
    return replace(round, emulated=False)


def file(*, truth: Truth | None = None, change: Change = real, rounds: int = 99, **spoiled: Spoiled) -> Manifest:
    """The BenchmarkRun of pool latency with its rounds, its first `rounds` only."""
    speeds = truth and tuple((arm, tuple(of.items())) for arm, of in truth.items())
    spec, measured, _, _ = _desk(speeds, tuple(spoiled.items()))
    return brought(spec, [change(one) for one in measured[:rounds]])


def with_status() -> Manifest:
    """The whole file, measured a day ago by the clock on the wall."""
    _, _, status, ended = _desk(None, ())
    seconds = (datetime.now(UTC) - LATER - ended).total_seconds()
    return {**file(change=lambda round: real(moved(round, seconds))), "status": dict(status)}


def moved(round: Round, seconds: float) -> Round:
    began, ended = (
        timestamp(parse_time(time) + timedelta(seconds=seconds)) for time in (round.start_time, round.completion_time)
    )
    return replace(round, start_time=began, completion_time=ended)


def brought(spec: Manifest, rounds: Sequence[Round], **measured: Any) -> Manifest:
    """As `paceline measure` keeps it in memory: with its rounds."""
    how = {"machine": "desk", "note": NOTE, "rounds": len(rounds), **measured}
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": NAME, "namespace": "models"},
        "spec": {**spec, "measured": how},
        "rounds": [record.noted(to_status(replace(one, fingerprint=fingerprint(spec))), NOTE) for one in rounds],
    }


def apply(world: World, file: Manifest) -> None:
    """kubectl apply -f of the file; nobody looks in between."""
    run, *rounds = record.as_documents(file)
    for one in rounds:
        world.cluster.apply(one)
    world.apply(run)


@cache
def _desk(
    truth: Any, spoiled: tuple[tuple[str, Spoiled], ...]
) -> tuple[Manifest, tuple[Round, ...], Manifest, datetime]:
    """Its spec, its rounds, its status, and when it ended."""
    world = World(truths={"latency": {arm: dict(of) for arm, of in truth}}) if truth else World()
    measuring(world, "latency")
    while world.under_way("round"):
        world.round_ends(**dict(spoiled))
    (run,) = world.runs("latency")
    return dict(run["spec"]), rounds_of(run), dict(run["status"]), world.cluster.now


def allowing() -> World:
    """A world of the day after, whose administrator allows imported evidence."""
    world = World()
    allow(world)
    return world


def allow(world: World) -> None:
    world.settings = ALLOWED
    world.cluster.now += LATER
