"""A depth that moves: SGLang's own table, and vLLM's schedule and costs."""

from collections.abc import Sequence

import pytest

from paceline_emulator import profile
from paceline_emulator.depth import AT_REST, OWN_TABLE, Adaptive, Paces, by_cost, by_schedule, depths, slots, table
from paceline_emulator.profile import Pace, Shape

GENERIC = profile.generic()


def paces(steps: int) -> Paces:
    return profile.paces(GENERIC, Shape(steps=steps, branches=1, width=steps + 1) if steps else AT_REST)


def adaptive(begins: int = 3) -> Adaptive:
    return Adaptive(paces, slots(OWN_TABLE, begins))


def after(moves: Adaptive, batch: int, accepted: Sequence[int], steps: int) -> list[int]:
    """The depths of so many steps that accept this, as far as it is proposed."""
    seen = []
    for _ in range(steps):
        now = moves.of(batch).proposed
        seen.append(now)
        moves.learn(batch, [min(one, now) for one in accepted])
    return seen


def test_the_depths_of_sglangs_own_table() -> None:
    assert depths(table(None)) == [0, 1, 3, 5, 7]


@pytest.mark.parametrize(("batch", "begins"), [(1, 3), (8, 3), (30, 3), (31, 1), (60, 1), (61, 0), (200, 0)])
def test_a_batch_goes_by_the_graph_it_is_padded_to(batch: int, begins: int) -> None:
    """31 requests run in the graph of 32, 61 in that of 64, whose entry has depth 0 alone; where 3 is none, the
    middle of its entry is taken."""
    assert adaptive().of(batch).proposed == begins


def test_a_good_head_gets_deeper_and_a_useless_one_rests_where_it_may() -> None:
    assert after(adaptive(), 1, [7], 80)[-1] == 7
    assert after(adaptive(), 1, [0], 80)[-1] == 1
    assert after(adaptive(), 8, [3] * 8, 80)[-1] == 3
    assert 0 in after(adaptive(), 8, [0] * 8, 80)


def test_nothing_moves_while_it_warms_up() -> None:
    assert set(after(adaptive(), 1, [7], 15)) == {3}


def test_after_a_rest_the_least_depth_is_tried() -> None:
    seen = after(adaptive(), 8, [0] * 8, 200)
    assert set(seen[100:]) == {0, 1}


def test_at_depth_0_the_root_is_verified_and_the_head_costs() -> None:
    resting, plain = adaptive().of(64), profile.paces(GENERIC, None)
    assert (resting.proposed, resting.counted, resting.paces[None].acceptance) == (0, True, 1.0)
    assert resting.paces[None].throughput(64) < plain[None].throughput(64)


@pytest.mark.parametrize(
    ("batch", "proposed", "counted"), [(1, 4, True), (8, 4, True), (9, 0, False), (17, 2, True), (500, 2, True)]
)
def test_a_schedule(batch: int, proposed: int, counted: bool) -> None:
    """Beyond the last range and in a gap it goes on like what was before."""
    found = by_schedule([(1, 8, 4), (9, 12, 0), (17, 48, 2)], paces)(batch)
    assert (found.proposed, found.counted) == (proposed, counted)
    assert by_schedule([(1, 8, 4), (9, 12, 0), (17, 48, 2)], paces)(14).proposed == 0


def test_adaptive_verification_proposes_as_many_and_verifies_what_is_worth_it() -> None:
    def of_width(verified: int) -> Paces:
        full = max(32, 512 / (verified + 1))
        points = {1: 100 + 20 * verified, 32: 1000 - 50 * verified}
        return {None: Pace(acceptance=1 + 0.6 * (verified > 0), points=points, slope_beyond=0.5, width=int(512 / full))}

    choose = by_cost(4, of_width)
    assert (choose(1).proposed, choose(1).counted, choose(1).paces) == (4, True, of_width(4))
    assert (choose(32).proposed, choose(32).paces) == (4, of_width(0))


def test_a_table_of_ones_own_is_read_as_sglang_reads_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("table") / "adaptive.json"
    file.write_text('{"ema_alpha": 1.0, "1": {"candidate_steps": [2, 4]}, "16": {"candidate_steps": [0]}}')
    found = table(str(file))
    assert depths(found) == [0, 2, 4]
    assert {size: (slot.steps, slot.alpha) for size, slot in slots(found, 2).items()} == {
        1: ((2, 4), 1.0),
        16: ((0,), 1.0),
    }
    file.write_text('{"candidate_steps": [1]}')
    with pytest.raises(ValueError, match="at least one integer-string BS key"):
        table(str(file))
