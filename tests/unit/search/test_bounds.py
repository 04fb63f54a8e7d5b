"""What the search costs and misses, on few seeds: `make bench` counts it on many (docs/searching.md)."""

import math
import random

import pytest
from tests.support import replay, rooflines, strangers
from tests.unit.search.tables import SPECBUNDLE, cost, made, mean, percentile, specbundle


def test_specbundles_tables() -> None:
    grids = [specbundle(file) for file in SPECBUNDLE]
    found = [(grid, replay.replay(grid, 0.02, seed)) for grid in grids for seed in range(3)]
    assert mean(one.regret for _, one in found) <= 0.003
    assert percentile((one.regret for _, one in found), 0.95) <= 0.03
    assert mean(cost(grid, one) for grid, one in found) <= 0.30


@pytest.mark.parametrize("regime", ["latency", "busy", "deep"])
def test_made_up_servers(regime: str) -> None:
    """A concurrency where wide trees win, one where little is to be won, and one of deep chains."""
    ranges = rooflines.REGIMES[regime]
    grids = [replay.grid(rooflines.table(rooflines.GRID_47, ranges, seed=seed)) for seed in (1001, 1002)]
    found = [(grid, replay.replay(grid, 0.02, seed)) for seed, grid in enumerate(grids)]
    assert mean(one.regret for _, one in found) <= 0.025
    assert mean(cost(grid, one) for grid, one in found) <= 0.06
    assert all(one.starts <= 0.27 * 47 for _, one in found)


@pytest.mark.parametrize("family", strangers.EVERY)
def test_servers_by_other_formulas(family: str) -> None:
    """None of which the search knows."""
    grids = [made(family, seed=1000 + seed) for seed in range(3)]
    found = [(grid, replay.replay(grid, 0.02, seed)) for seed, grid in enumerate(grids)]
    assert mean(one.regret for _, one in found) <= 0.02
    assert mean(cost(grid, one) for grid, one in found) <= 0.0625
    assert mean(one.starts for _, one in found) <= 0.27 * 47


def test_servers_that_do_not_tell_what_was_accepted() -> None:
    grids = [made(family, seed=1000, told=None) for family in strangers.CHOSEN]
    assert mean(replay.replay(grid, 0.02, 0).regret for grid in grids) <= 0.02


def test_a_ranking_that_is_wrong_by_15_percent_costs_little() -> None:
    """Because it says who is measured, and only measured points say who wins."""
    regrets = []
    for seed in range(8):
        grid = made("any", seed=2000 + seed)
        chance = random.Random(seed)
        doubts = {name: chance.gauss(0, math.log(1.15)) for name in grid.searched}
        regrets.append(replay.replay(grid, 0.02, seed, doubts=doubts).regret)
    assert mean(regrets) <= 0.02
    assert max(regrets) <= 0.05


def test_the_grids_of_the_bounds_have_as_many_trees_as_they_say() -> None:
    assert [len(g) for g in (rooflines.GRID_47, rooflines.OTHER_47, rooflines.GRID_136)] == [47, 47, 136]
