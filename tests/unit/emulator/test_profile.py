"""Throughput and acceptance between, at and beyond the published points."""

import math
from itertools import pairwise

import pytest
from tests.support.published import NARROW, POINTS, PUBLISHED_AS, WIDE, Point, Tree
from tests.support.running import TARGET

from paceline_emulator import profile
from paceline_emulator.models import Model
from paceline_emulator.profile import Shape

CODER = profile.for_target(Model(path="m", config=TARGET))
DATASETS = tuple(PUBLISHED_AS)


def shape(tree: Tree | None) -> Shape | None:
    return tree and Shape(steps=tree[0], branches=tree[1], width=tree[2])


def paces(tree: Tree | None, forced: float | None = None) -> dict[str | None, profile.Pace]:
    return profile.paces(CODER, shape(tree), forced)


def test_there_are_twenty_points() -> None:
    assert len(POINTS) == 20


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.table} {point.dataset}")
def test_published_points_come_out_exactly(point: Point) -> None:
    assert paces(point.tree)[point.dataset].throughput(point.batch) == pytest.approx(point.throughput, rel=1e-9)


@pytest.mark.parametrize("tree", [WIDE, NARROW], ids=["wide", "narrow"])
def test_acceptance_is_plausible_and_rises_with_the_speed_up_at_batch_1(tree: Tree) -> None:
    found = {name: pace.acceptance for name, pace in paces(tree).items() if name}
    assert all(1.5 < length < tree[0] + 1 for length in found.values())
    gain = {name: paces(WIDE)[name].points[1] / paces(None)[name].points[1] for name in found}
    assert sorted(found, key=lambda name: found[name]) == sorted(gain, key=lambda name: gain[name])


@pytest.mark.parametrize("dataset", DATASETS)
def test_costs_are_positive(dataset: str) -> None:
    assert all(cost.draft > 0 and cost.verify > 0 for cost in CODER.datasets[dataset].cost.values())


@pytest.mark.parametrize("tree", [None, WIDE, NARROW, (1, 1, 2), (7, 1, 8), (2, 8, 16)])
@pytest.mark.parametrize("dataset", DATASETS)
def test_more_requests_never_get_less_throughput(dataset: str, tree: Tree | None) -> None:
    found = [paces(tree)[dataset].throughput(batch) for batch in range(1, 700)]
    assert all(more >= less * (1 - 1e-12) for less, more in pairwise(found))


def test_between_the_batch_sizes_it_is_straight_in_log_log() -> None:
    pace = paces(WIDE)["chat"]
    middle = math.sqrt(pace.throughput(1) * pace.throughput(32))
    assert pace.throughput(math.sqrt(32)) == pytest.approx(middle)


def test_under_high_load_speculation_loses() -> None:
    wide, baseline = paces(WIDE)["chat"], paces(None)["chat"]
    assert wide.throughput(32) > 1.3 * baseline.throughput(32)
    assert wide.throughput(256) < baseline.throughput(256)


def test_text_of_no_set_is_the_geometric_mean() -> None:
    found = paces(WIDE)
    mean = math.prod(found[name].throughput(32) for name in DATASETS) ** 0.25
    assert found[None].throughput(32) == pytest.approx(mean)


def test_a_head_that_accepts_nothing_is_slower_than_the_baseline() -> None:
    useless, baseline = paces(WIDE, forced=1.0), paces(None)
    assert all(useless[name].acceptance == 1.0 for name in useless)
    assert all(useless[name].throughput(b) < baseline[name].throughput(b) for name in useless for b in (1, 8, 32))


def test_a_lookup_costs_no_draft_and_is_worth_less() -> None:
    args = {"speculative_num_steps": 1, "speculative_eagle_topk": 10, "speculative_num_draft_tokens": 12}
    ngram = profile.shape_of({"speculative_algorithm": "NGRAM", **args})
    eagle = profile.shape_of({"speculative_algorithm": "EAGLE", **args})
    assert ngram is not None
    assert eagle is not None
    assert 1 < profile.acceptance(0.6, ngram) < profile.acceptance(0.6, eagle)
    cost = CODER.datasets["code"].cost[1]
    assert cost.of(ngram) < cost.of(eagle)


@pytest.mark.parametrize("changed", [{"hidden_size": 4096}, {"architectures": ["LlamaForCausalLM"]}])
def test_an_unknown_target_gets_the_generic_profile(changed: dict[str, object]) -> None:
    assert CODER.name == "qwen3-coder-next"
    assert profile.for_target(Model(path="m", config={**TARGET, **changed})).name == "generic"
