"""A pool of the example that was measured without a cluster, as `paceline measure` leaves it in its file."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tests.support.answers import Spoiled, Truth
from tests.support.stories import measuring
from tests.support.world import World

from paceline.evidence import RoundResult, decode, encode
from paceline.plan.pods import terminated
from paceline.plan.simulation import reconciler
from paceline.plan.step import Manifest

ALLOWED = replace(reconciler.SETTINGS, imported_evidence=True)
NAME = "qwen3-coder-next-latency-at-the-desk"
LATER = timedelta(days=1)
"""From the measurement until the file is applied."""
Change = Callable[[RoundResult], RoundResult]


def real(result: RoundResult) -> RoundResult:
    """The stories' answers are those of an emulator."""
    return replace(result, emulated=False)


def file(*, truth: Truth | None = None, change: Change = real, rounds: int = 99, **spoiled: Spoiled) -> Manifest:
    """The BenchmarkRun of pool latency with its messages, its first `rounds` only."""
    speeds = truth and tuple((arm, tuple(of.items())) for arm, of in truth.items())
    spec, messages, _, _ = _desk(speeds, tuple(spoiled.items()))
    written = [encode(change(decode(message))) for message in messages[:rounds]]
    return with_rounds(spec, written)


def with_status() -> Manifest:
    """The whole file, measured a day ago by the clock on the wall."""
    _, _, status, ended = _desk(None, ())
    seconds = (datetime.now(UTC) - LATER - ended).total_seconds()
    return {**file(change=lambda result: real(moved(result, seconds))), "status": dict(status)}


def moved(result: RoundResult, seconds: float) -> RoundResult:
    return replace(result, started=result.started + seconds, finished=result.finished + seconds)


def with_rounds(spec: Manifest, messages: Sequence[str], **measured: Any) -> Manifest:
    brought = {"machine": "desk", "note": "measured on desk without a cluster", "rounds": list(messages), **measured}
    metadata = {"name": NAME, "namespace": "models"}
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": metadata,
        "spec": {**spec, "measured": brought},
    }


@cache
def _desk(truth: Any, spoiled: tuple[tuple[str, Spoiled], ...]) -> tuple[Manifest, tuple[str, ...], Manifest, datetime]:
    """Its spec, the messages of its rounds, its status, and when it ended."""
    world = World(truths={"latency": {arm: dict(of) for arm, of in truth}}) if truth else World()
    measuring(world, "latency")
    while world.under_way("round"):
        world.round_ends(**dict(spoiled))
    (run,) = world.runs("latency")
    ended = (terminated(world.pod_of(job), "client") for job in world.cluster.of("Job", component="round"))
    messages = tuple(str(one["message"]) for one in ended if one)
    return dict(run["spec"]), messages, dict(run["status"]), world.cluster.now


def allowing() -> World:
    """A world of the day after, whose administrator allows imported evidence."""
    world = World()
    allow(world)
    return world


def allow(world: World) -> None:
    world.settings = ALLOWED
    world.cluster.now += LATER
