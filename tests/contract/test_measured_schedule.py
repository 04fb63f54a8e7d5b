"""A schedule that is written from measured winners, beside the engine's own adaptive mode: emulated engines that choose
their depth as SGLang 0.5.23 does, from measurement to verdict, by the operator's own code.

The server is made up: its best chain is long for one user, short for eight, and none for 32.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.support.simulated import Engines, closed, decided, measured, moving

from paceline import core
from paceline.core import Depth, Tree, Verdict
from paceline.engines import ENGINES
from paceline.search import Cell, Option, Point, Question, schedule
from paceline_emulator import depth
from paceline_emulator.engine import Engine
from paceline_emulator.profile import Pace

LOADS = (1, 8, 32)
ACCEPTED = 0.7
BASELINE = {1: 100.0, 8: 640.0, 32: 1900.0, 64: 3000.0}
RAMP = moving(LOADS[0], LOADS[-1], 96)
GATE = core.Gate(min_improvement=0.02, decide_after_rounds=(3, 6))
Table = Mapping[str, Mapping[str, Any]]


@cache
def paces(steps: int) -> depth.Paces:
    """A step of the head and its token cost more, the more requests there are; at depth 0 the head reads along."""
    length = sum(ACCEPTED**level for level in range(steps + 1))
    points = {
        float(batch): speed * length / (1 + steps * 0.06 * batch**0.75) * (1 if steps else 0.99)
        for batch, speed in BASELINE.items()
    }
    return {None: Pace(acceptance=length, points=points, slope_beyond=0.5, width=1 + steps)}


def plain(_: int) -> Engine:
    only = {None: Pace(acceptance=1.0, points={float(b): s for b, s in BASELINE.items()}, slope_beyond=0.5, width=1)}
    return Engine(paces=only, limit=64, speculative=False, width=1, log_interval=10)


def chain(steps: int) -> Callable[[int], Engine]:
    return lambda _: Engine(paces=paces(steps), limit=64, speculative=True, width=1 + steps, log_interval=10)


def by_table(table: Table) -> Callable[[int], Engine]:
    """As `--speculative-adaptive-config` makes it, SGLang's own way to choose included."""

    def fresh(_: int) -> Engine:
        adaptive = depth.Adaptive(paces=paces, slots=depth.slots(table, begins=depth.depths(table)[-1]))
        return Engine(
            paces=paces(0), limit=64, speculative=True, width=1, log_interval=10,
            drafting=adaptive.of, learn=adaptive.learn,
        )  # fmt: skip

    return fresh


def written(table: Sequence[Depth]) -> Table:
    return {str(one.from_batch_size): {"candidate_steps": [one.num_steps]} for one in table}


RIGHT: Table = written(
    [Depth(from_batch_size=size, num_steps=steps) for size, steps in ((1, 5), (4, 3), (6, 2), (16, 1), (26, 0))]
)
WRONG: Table = {size: {"candidate_steps": [entry["candidate_steps"][0] + 1]} for size, entry in RIGHT.items()}
"""One step too deep everywhere."""


@cache
def table() -> tuple[Depth, ...]:
    """From a sweep over the loads, as a search with `schedule` makes it."""
    names = {f"tree-{steps}-1-{steps + 1}": steps for steps in schedule.DEPTHS}
    loads = [closed(load, 96) for load in LOADS]
    engines: Engines = {"baseline": plain, **{name: chain(steps) for name, steps in names.items()}}
    points = [
        Point(round=one.round, cell=Cell(arm=one.arm, workload=one.workload), throughput=one.output_throughput)
        for one in measured(engines, loads, core.Gate(decide_after_rounds=(2,)))
    ]
    question = Question(
        options=(
            Option(name="baseline"),
            *(
                Option(name=name, tree=Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1), draft_tokens=steps)
                for name, steps in names.items()
            ),
        ),
        workloads={load.workload.name: 1.0 for load in loads},
    )
    assert schedule.sweep(question, points) is None
    levels = schedule.levels(question, points, {load.workload.name: load.workload.concurrency for load in loads})
    return schedule.written(levels, ENGINES["SGLang"].threshold)


def verdict(own: Table) -> Verdict:
    """Of the gate about the measured schedule, the engine's `own` table and a chain, beside each threshold too."""
    sides = itertools.chain.from_iterable((one.from_batch_size - 1, one.from_batch_size) for one in table()[1:])
    loads = [*(closed(load, 96) for load in sorted({*LOADS, *sides})), RAMP]
    engines: Engines = {
        "baseline": plain,
        "schedule": by_table(written(table())),
        "static": chain(2),
        "adaptive": by_table(own),
    }
    return decided(list(engines), loads, GATE, measured(engines, loads, GATE))


def test_the_sweep_finds_a_depth_for_each_load() -> None:
    assert [(one.from_batch_size, one.num_steps) for one in table()] == [(1, 5), (3, 2), (17, 0)]


def test_where_the_engines_own_table_is_wrong_by_one_step_the_measured_one_is_promoted() -> None:
    found = verdict(WRONG)
    assert (found.outcome, found.winner) == ("Promote", "schedule")
    assert found.arms["adaptive"].outcome == "rejected"
    assert found.arms["adaptive"].reason == "WorkloadRegressed"
    assert "@32" in found.arms["adaptive"].message


def test_where_it_is_right_it_is_promoted_and_the_measured_one_is_told_to_be_near() -> None:
    """A right table has an entry for every load; the measured one was measured at three, and is 3 % behind between."""
    found = verdict(RIGHT)
    assert (found.outcome, found.winner) == ("Promote", "adaptive")
    assert {name: arm.outcome for name, arm in found.arms.items()}["schedule"] == "promotable"
    mean = {name: arm.mean.ratio for name, arm in found.arms.items() if arm.mean}
    assert mean["schedule"] == pytest.approx(mean["adaptive"], rel=0.04)


def test_sglangs_default_table_is_measured_beside_them() -> None:
    """It goes by what is accepted and never by what is fast: at 32 users it goes on drafting one token."""
    found = verdict(depth.OWN_TABLE)
    assert found.winner == "schedule"


def with_a_slow(adaptive: depth.Adaptive, batches: range) -> Callable[[int], depth.Drafting]:
    """Its steps take three times as long at these batch sizes, as where no graph was captured for them (vllm#49548)."""

    def of(batch: int) -> depth.Drafting:
        chosen = adaptive.of(batch)
        return slowed(chosen, 3) if batch in batches else chosen

    return of


def with_a_stall_when_the_batch_moves(adaptive: depth.Adaptive, steps: int) -> Callable[[int], depth.Drafting]:
    """So many steps take three times as long whenever the batch is another one than in the step before."""
    state = {"batch": 0, "until": 0, "asked": 0}

    def of(batch: int) -> depth.Drafting:
        state["asked"] += 1
        if batch != state["batch"]:
            # A step asks twice or more: for its time, and at its end for its tokens.
            state.update(batch=batch, until=state["asked"] + 2 * steps)
        chosen = adaptive.of(batch)
        return slowed(chosen, 3) if state["asked"] < state["until"] else chosen

    return of


def slowed(chosen: depth.Drafting, times: float) -> depth.Drafting:
    paces = {
        name: replace(pace, points={batch: speed / times for batch, speed in pace.points.items()})
        for name, pace in chosen.paces.items()
    }
    return replace(chosen, paces=paces)


def on_the_ramp(drafting: Callable[[depth.Adaptive], Callable[[int], depth.Drafting]]) -> Verdict:
    """Of the gate about the measured schedule, as an engine carries it out."""
    sides = itertools.chain.from_iterable((one.from_batch_size - 1, one.from_batch_size) for one in table()[1:])
    loads = [*(closed(load, 96) for load in sorted({*LOADS, *sides})), RAMP]

    def fresh(_: int) -> Engine:
        own = written(table())
        adaptive = depth.Adaptive(paces=paces, slots=depth.slots(own, begins=depth.depths(own)[-1]))
        return Engine(
            paces=paces(0), limit=64, speculative=True, width=1, log_interval=10,
            drafting=drafting(adaptive), learn=adaptive.learn,
        )  # fmt: skip

    engines: Engines = {"baseline": plain, "schedule": fresh}
    return decided(list(engines), loads, GATE, measured(engines, loads, GATE))


def ratio(verdict: Verdict, arm: str, workload: str) -> float:
    return verdict.arms[arm].workloads[workload].ratio


def test_on_the_ramp_the_measured_schedule_is_faster_than_the_baseline_and_no_worse_than_a_chain() -> None:
    found = verdict(WRONG)
    ramp = RAMP.workload.name
    assert ramp == "code-ramp@1-32"
    assert ratio(found, "schedule", ramp) > 1.02
    assert ratio(found, "schedule", ramp) > ratio(found, "static", ramp)
    assert ratio(found, "schedule", ramp) > ratio(found, "adaptive", ramp)


def test_a_collapse_between_the_loads_that_are_measured_shows_on_the_ramp_alone() -> None:
    found = on_the_ramp(lambda adaptive: with_a_slow(adaptive, range(18, 32)))
    assert found.arms["schedule"].outcome == "rejected"
    assert found.arms["schedule"].message.startswith("code-ramp@1-32 0.")
    closed_loops = [name for name in found.arms["schedule"].workloads if name != "code-ramp@1-32"]
    assert all(ratio(found, "schedule", name) > 0.97 for name in closed_loops)


def test_an_engine_that_stalls_while_the_load_moves_shows_on_the_ramp_alone() -> None:
    smooth, stalling = (
        on_the_ramp(lambda adaptive, steps=steps: with_a_stall_when_the_batch_moves(adaptive, steps)).arms["schedule"]
        for steps in (0, 4)
    )
    lost = {name: bounds.ratio / smooth.workloads[name].ratio for name, bounds in stalling.workloads.items()}
    on_ramp = lost.pop(RAMP.workload.name)
    assert on_ramp < 0.92
    assert min(lost.values()) > 0.96, "a closed loop's batch moves as it begins and ends"
