"""The arms of a search: few enough for a run, each worth a server start, each such that its engine can run it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engines.sglang.servers import server

from paceline.core import Arm, Draft, Engine, Model, Ngram, Range, Search, Server, Tree
from paceline.engines.grid import MOST_ARMS, name_of, searchable_arms, shared_refusals, useless

HEAD = Draft(algorithm="EAGLE3", model=Model(source="hf://owner/head"))
TRITON = server("--attention-backend=triton")


def ranges(steps: tuple[int, int], top_k: tuple[int, int], tokens: tuple[int, int], draft: Draft = HEAD) -> Search:
    (a, b), (c, d), (e, f) = steps, top_k, tokens
    return Search(
        draft=draft,
        num_steps=Range(min=a, max=b),
        top_k=Range(min=c, max=d),
        num_draft_tokens=Range(min=e, max=f),
    )


def names(search: Search, of: Server = TRITON, named: tuple[Arm, ...] = ()) -> list[str]:
    return [arm.name for arm in searchable_arms(of, search, named)]


def on_vllm() -> Server:
    return replace(TRITON, engine=Engine(type="vLLM", version="0.33.0", image="vllm/vllm-openai:v0.33.0"))


def test_of_small_ranges_every_tree_is_tried_and_the_engines_own_mode() -> None:
    found = names(ranges((1, 3), (1, 4), (2, 8)))
    assert found == [
        "adaptive",
        *("tree-1-1-2", "tree-1-2-3", "tree-1-4-4"),
        *("tree-2-1-3", "tree-2-2-4", "tree-2-4-4", "tree-2-4-8"),
        *("tree-3-1-4", "tree-3-2-8", "tree-3-4-8"),
    ]


def test_one_tree_is_a_search_too() -> None:
    assert names(ranges((3, 3), (4, 4), (8, 8))) == ["adaptive", "tree-3-4-8"]


def test_of_large_ranges_fewer_are_tried() -> None:
    found = names(ranges((1, 64), (1, 64), (2, 512)))
    assert 30 < len(found) < MOST_ARMS
    assert {"tree-1-1-2", "tree-64-64-256"} <= set(found)


def test_an_engine_without_trees_gets_chains() -> None:
    found = [name for name in names(ranges((1, 7), (1, 8), (2, 32)), on_vllm()) if name != "adaptive"]
    assert found == [f"tree-{steps}-1-{steps + 1}" for steps in range(1, 8)]


def test_a_backend_that_drafts_no_trees_gets_none() -> None:
    found = names(ranges((1, 4), (1, 8), (2, 32)), server("--attention-backend=trtllm_mha"))
    assert [name for name in found if name != "adaptive"] == [f"tree-{steps}-1-{steps + 1}" for steps in range(1, 5)]


def test_a_named_candidate_is_among_them_and_takes_the_place_of_its_tree() -> None:
    ngram = Arm(name="ngram", draft=Draft(algorithm="NGRAM"), ngram=Ngram(num_draft_tokens=8))
    wide = Arm(name="wide", draft=HEAD, tree=Tree(num_steps=3, top_k=4, num_draft_tokens=8))
    found = names(ranges((3, 3), (4, 4), (8, 16)), named=(ngram, wide))
    assert found == ["ngram", "wide", "adaptive", "tree-3-4-16"]


def test_ranges_without_a_tree_give_none() -> None:
    assert names(ranges((5, 5), (1, 1), (2, 3))) == ["adaptive"]


def test_what_any_of_them_needs_of_the_shared_arguments_is_told_once() -> None:
    """Each may be what the search finds: a chain alone loses overlap scheduling on 0.5.6."""
    old = server("--attention-backend=triton", "--mem-fraction-static=0.85", version="0.5.6")
    found = shared_refusals(old, searchable_arms(old, ranges((1, 7), (1, 8), (2, 32)), ()))
    assert [refusal.rule for refusal in found] == ["overlap-said"]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*(st.tuples(st.integers(1, 64), st.integers(1, 64)) for _ in range(2))), st.integers(2, 512))
def test_whatever_the_ranges_every_arm_fits_a_run(both: tuple[tuple[int, int], tuple[int, int]], widest: int) -> None:
    steps, top_k = ((min(pair), max(pair)) for pair in both)
    search = ranges(steps, top_k, (2, widest))
    arms = [arm for arm in searchable_arms(TRITON, search, ()) if arm.tree]
    assert len(arms) < MOST_ARMS
    assert len({arm.name for arm in arms}) == len(arms)
    for arm in arms:
        assert arm.tree
        assert arm.tree in search
        assert not useless(arm.tree)
        assert arm.name == name_of(arm.tree)
        assert re.fullmatch(r"[a-z0-9][-a-z0-9]{0,29}", arm.name)


@pytest.mark.parametrize("steps", [1, 5])
def test_a_trees_name_is_its_shape(steps: int) -> None:
    assert name_of(Tree(num_steps=steps, top_k=4, num_draft_tokens=8)) == f"tree-{steps}-4-8"
