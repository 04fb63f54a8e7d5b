"""What holds of the guard whatever is judged, and whenever: random histories of one pool."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.plan.test_properties import crash_a_server, measure, quick, ready, resume, spoil, suspend
from tests.support.guard import DAY, dropped, holds, hung, judged, operator_restarts
from tests.support.world import World, example

from paceline.plan.step import parse_time
from paceline.watch import JudgementKind


def serving(world: World) -> bool:
    return bool(world.pool("latency").get("serving"))


def drop(world: World) -> None:
    if serving(world):
        dropped(world)


def hang(world: World) -> None:
    if serving(world):
        hung(world)


def calm(world: World) -> None:
    if serving(world):
        judged(world, JudgementKind.AS_EXPECTED)


def half_a_day(world: World) -> None:
    world.wait(DAY // 2)


def a_day(world: World) -> None:
    world.wait(DAY)


def answered(world: World) -> None:
    """All that is measured ends, and what it promotes is ready."""
    for _ in range(3):
        measure(world)
    ready(world)


def change_the_gate(world: World) -> None:
    world.edit("gate", lambda spec: spec["gate"].update({"minImprovement": "1%"}))


EVENTS: Sequence[Callable[[World], None]] = (
    drop, drop, hang, calm, half_a_day, a_day, a_day, answered, answered, ready, spoil, crash_a_server,
    change_the_gate, suspend, resume, operator_restarts,
)  # fmt: skip


@quick
@given(st.lists(st.sampled_from(EVENTS), max_size=10))
def test_one_run_a_day_at_most_and_evidence_that_is_held_promotes_nothing(
    history: list[Callable[[World], None]],
) -> None:
    world, held = World(), set[str]()
    manifest = example("latency")
    manifest["spec"] |= {"gate": {"decideAfterRounds": [2, 3]}, "guard": {"action": "Fallback"}}
    world.apply(manifest)
    world.prefetch_ends()
    ready(world)
    for event in (answered, drop, ready, *history):
        event(world)
        pool = world.pool("latency")
        held |= {pool["holds"][0]["internal"]["run"]} if fallback(pool) else set()
        assert pool["internal"]["target"].get("evidence", {}).get("run") not in held
        made = sorted(parse_time(run["metadata"]["creationTimestamp"]) for run in holds(world))
        assert all(later - earlier >= timedelta(days=1) for earlier, later in pairwise(made))
        assert world.condition("SpeculationDegraded").startswith("True") or not fallback(pool)


def fallback(pool: Any) -> bool:
    return any(hold["reason"] == "Fallback" for hold in pool.get("holds", ()))
