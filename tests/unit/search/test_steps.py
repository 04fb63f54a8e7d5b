"""The search as a state machine: what it measures next is a function of what was measured."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import replay, rooflines
from tests.support.messages import Says
from tests.unit.search.tables import chains

from paceline.core import BASELINE
from paceline.search import ArmOnWorkload, Found, Limits, Measure, Observation, Option, Question, proceed

TABLE = rooflines.table(rooflines.GRID_47, seed=7)
GRID = replay.grid(TABLE)


def rounds(grid: replay.Grid, limits: Limits = replay.UNLIMITED, seed: int = 0) -> tuple[list[Measure], Found]:
    question, points, measured = grid.question(limits), list[Observation](), list[Measure]()
    while not isinstance(step := proceed(question, points), Found):
        measured.append(step)
        points += (replay.measured(grid, cell, step.round, 0.02, seed) for cell in step.cells)
    return measured, step


def arms(step: Measure) -> set[str]:
    return {cell.arm for cell in step.cells}


def test_the_first_round_is_one_deep_chain_on_every_workload() -> None:
    (first, *_), _ = rounds(GRID)
    assert first.cells == tuple(ArmOnWorkload(arm="(7, 1, 8)", workload=w) for w in GRID.workloads)


def test_the_second_has_the_baseline_the_default_and_a_tree_of_each_branching_on_two_workloads() -> None:
    (_, second, *_), _ = rounds(GRID)
    measured = {arm: sum(cell.arm == arm for cell in second.cells) for arm in arms(second)}
    assert (measured.pop(BASELINE), measured.pop("(3, 1, 4)")) == (2, 2)
    assert list(measured.values()) == [2, 2, 2]
    assert sorted(GRID.trees[arm].top_k for arm in measured) == [2, 3, 4]


def test_one_of_the_baselines_workloads_is_where_least_is_accepted() -> None:
    (_, second, *_), _ = rounds(GRID)
    lengths = {w: GRID.lengths[ArmOnWorkload(arm="(7, 1, 8)", workload=w)] or 0 for w in GRID.workloads}
    assert min(lengths, key=lengths.__getitem__) in {c.workload for c in second.cells if c.arm == BASELINE}


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_interrupted_anywhere_it_ends_as_it_would_have(data: st.DataObject) -> None:
    """A round that was begun goes on with the cells that are missing, whatever the order of the points."""
    grid = replay.grid(chains(s3=1.4, s5=1.42))
    question, points = grid.question(), list[Observation]()
    while not isinstance(step := proceed(question, points), Found):
        cells = data.draw(st.permutations(step.cells))[: data.draw(st.integers(1, len(step.cells)))]
        points += (replay.measured(grid, cell, step.round, 0.02, 0) for cell in cells)
        points = data.draw(st.permutations(points))
    _, uninterrupted = rounds(grid)
    assert step == uninterrupted


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.sampled_from(("s1", "s2", "s3", "s5", "s7")), st.floats(0.3, 3)),
    st.integers(0, 3),
    st.sampled_from((0.0, 0.02, 0.1)),
)
def test_it_always_ends_and_never_measures_more_than_the_grid_three_times(
    speed_ups: dict[str, float], seed: int, cv: float
) -> None:
    grid = replay.grid(chains(**speed_ups))
    found = replay.replay(grid, cv, seed)
    assert found.found.winner in (*grid.trees, BASELINE)
    assert len(found.points) <= 3 * 6 * 2


@pytest.mark.parametrize(
    ("speed_ups", "winner"),
    [
        ({"s1": 0.9, "s2": 0.8, "s3": 0.7, "s5": 0.6, "s7": 0.5}, BASELINE),
        ({"s7": 1.6}, "(7, 1, 8)"),
        ({"s1": 1.5}, "(1, 1, 2)"),
        ({"s5": 1.4}, "(5, 1, 6)"),
        # Of those that nothing tells apart, the one that drafts least.
        ({"s3": 1.3, "s5": 1.301, "s7": 1.302}, "(3, 1, 4)"),
    ],
)
def test_without_noise_it_finds_the_best(speed_ups: dict[str, float], winner: str) -> None:
    assert replay.replay(replay.grid(chains(**speed_ups)), 0.0, 0).found.winner == winner


def test_with_one_workload_nothing_wins_on_one_point() -> None:
    table = chains(s3=1.5)
    del table["baseline"]["chat"]
    for tree in table["trees"]:
        del tree["points"]["chat"]
    found = replay.replay(replay.grid(table), 0.02, 0)
    assert found.found.winner == "(3, 1, 4)"
    assert sum(point.cell.arm == "(3, 1, 4)" for point in found.points) >= 2


@pytest.mark.parametrize("limits", [Limits(points=12), Limits(starts=6), Limits(points=20, starts=7)])
def test_a_budget_that_is_spent_gives_the_best_so_far_with_its_interval_and_says_so(limits: Limits, says: Says) -> None:
    found = replay.replay(GRID, 0.02, 0, limits)
    assert len(found.points) <= (limits.points or math.inf)
    assert found.starts <= (limits.starts or math.inf)
    assert not found.found.complete
    says(found.found.notes[0])
    assert found.found.winner
    assert found.found.speed_up
    assert found.found.speed_up.lower < found.found.speed_up.ratio < found.found.speed_up.upper


def test_an_arm_that_no_model_can_rank_is_measured_with_the_baseline() -> None:
    """The engine's own adaptive mode."""
    question = Question(
        options=(*GRID.question().options, Option(name="adaptive")), workloads=dict.fromkeys(GRID.workloads, 1.0)
    )
    points: list[Observation] = []
    while not isinstance(step := proceed(question, points), Found):
        for cell in step.cells:
            if cell.arm == "adaptive":
                speed = GRID.throughput[ArmOnWorkload(arm=BASELINE, workload=cell.workload)]
                points.append(Observation(round=step.round, cell=cell, throughput=9 * (speed or 0)))
            else:
                points.append(replay.measured(GRID, cell, step.round, 0.02, 0))
    assert step.winner == "adaptive"


@pytest.mark.parametrize(
    "changed",
    [
        {"options": (Option(name="a"),)},
        {"options": (Option(name=BASELINE), Option(name="a"), Option(name="a"))},
        {"workloads": {}},
        {"workloads": {"code": 0.0}},
    ],
)
def test_a_question_that_makes_no_sense(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(changed))}: "):
        Question(**({"options": (Option(name=BASELINE),), "workloads": {"code": 1.0}} | changed))  # type: ignore[arg-type]
