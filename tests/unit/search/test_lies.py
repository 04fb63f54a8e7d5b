"""Tables that lie, and servers that fail, end in a clear result or error, never in a wrong winner in silence."""

import math
import re
from typing import Any

import pytest
from tests.support import replay
from tests.support.messages import Says
from tests.unit.search.tables import chains

from paceline.core import BASELINE, Tree
from paceline.engines.grid import distinct
from paceline.search import ArmOnWorkload, Found, Observation, proceed


def broken(change: str, value: Any = None) -> dict[str, Any]:
    """A table in which `trees.2.points.code.throughput` has another value, or is missing (`...`)."""
    table: Any = chains()
    *path, last = change.split(".")
    place = table
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return dict(table)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        *(("trees.2.points.code.throughput", value) for value in (math.nan, math.inf, 0, -3.0, "170", ...)),
        ("trees.2.points.code", ...),
        ("trees.2.points.swe", {}),
        ("trees.2.points.code.acceptLength", math.nan),
        ("trees.2.points", ...),
        ("trees.2.numSteps", ...),
        ("trees.2.numSteps", 2.5),
        ("trees.2.topK", 0),
        ("trees.2.steps", 3),
        ("trees.2", chains()["trees"][1]),
        ("trees", []),
        ("trees", ...),
        ("baseline", {}),
        ("baseline.code", math.nan),
        ("baseline.code", None),
        ("base", 1),
    ],
)
def test_an_input_error_names_the_field(change: str, value: Any, says: Says) -> None:
    with pytest.raises(ValueError) as error:
        replay.grid(broken(change, value))
    assert str(error.value).startswith(re.sub(r"\.(\d)", r"[\1]", change))
    says(error.value)


def test_a_tree_whose_server_ends_never_wins_and_is_named() -> None:
    table = chains(s5=3.0)
    table["trees"][3]["points"]["chat"]["throughput"] = None
    found = replay.replay(replay.grid(table), 0.0, 0)
    assert found.found.winner != "(5, 1, 6)"
    assert found.regret == 0


def test_where_the_reference_fails_the_next_deepest_takes_its_place(says: Says) -> None:
    table = chains(s3=1.5)
    for point in table["trees"][4]["points"].values():
        point["throughput"] = None
    found = replay.replay(replay.grid(table), 0.0, 0)
    assert found.found.winner == "(3, 1, 4)"
    says(*found.found.notes)


def test_where_every_tree_fails_the_baseline_is_left_and_it_is_said(says: Says) -> None:
    table = chains()
    for tree in table["trees"]:
        for point in tree["points"].values():
            point["throughput"] = None
    found = replay.replay(replay.grid(table), 0.0, 0)
    assert found.found.winner == BASELINE
    says(*found.found.notes)


def test_an_arm_that_fails_once_is_tried_again(says: Says) -> None:
    grid = replay.grid(chains(s3=1.5))
    question, points, failed = grid.question(), list[Observation](), False
    while not isinstance(step := proceed(question, points), Found):
        for cell in step.cells:
            fails, failed = cell.arm == "(3, 1, 4)" and not failed, failed or cell.arm == "(3, 1, 4)"
            points.append(
                Observation(round=step.round, cell=cell, error="the node was lost")
                if fails
                else replay.measured(grid, cell, step.round, 0.0, 0)
            )
    assert step.winner == "(3, 1, 4)"
    says(*step.notes)


def test_an_arm_with_two_speeds_does_not_win_without_a_word(says: Says) -> None:
    table = chains(s3=1.3)
    table["trees"][2]["points"]["code"]["throughput"] *= 1.5
    found = replay.replay(replay.grid(table), 0.0, 0)
    assert found.found.winner == "(3, 1, 4)"
    says(*found.found.notes)


def test_a_length_that_no_server_can_have_is_not_used_and_said(says: Says) -> None:
    grid = replay.grid(broken("trees.2.points.code.acceptLength", 9.0))
    assert grid.lengths[ArmOnWorkload(arm="(3, 1, 4)", workload="code")] is None
    assert grid.notes[0].startswith("trees[2].points.code.acceptLength: ")
    says(*grid.notes)


def test_without_any_length_the_search_still_finds_the_best() -> None:
    table = chains(s2=1.5)
    for tree in table["trees"]:
        for point in tree["points"].values():
            point["acceptLength"] = None
    assert replay.replay(replay.grid(table), 0.0, 0).found.winner == "(2, 1, 3)"


def tree(steps: int, branches: int, tokens: int) -> Tree:
    return Tree(num_steps=steps, top_k=branches, num_draft_tokens=tokens)


def test_what_needs_no_measurement(says: Says) -> None:
    kept, left_out = distinct((tree(3, 1, 4), tree(3, 1, 8), tree(1, 4, 16), tree(7, 2, 4), tree(3, 2, 8)))
    assert kept == (0, 4)
    assert [*left_out] == [1, 2, 3]
    says(*left_out.values())
