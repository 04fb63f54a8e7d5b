"""Which values SGLang's releases choose by whether they speculate, and that those are asked for in every release."""

import pytest
from tests.unit.engines.sglang.servers import BASE, PINNED, chain, server

from paceline.engines import ENGINES
from paceline.engines.sglang import moved_arguments

SGLANG = ENGINES["SGLang"]
FIRST, LAST = "0.4.7", "0.5.13.post1"


def by_memory() -> list[str]:
    """Releases that size memory by whether they speculate."""
    names = [one.name for one in moved_arguments.releases()]
    return names[names.index(FIRST) : names.index(LAST) + 1]


@pytest.mark.parametrize("read", moved_arguments.releases(), ids=lambda one: one.name)
def test_the_memory_of_a_chain_is_asked_for_where_the_wheel_shows_that_it_moves(
    read: moved_arguments.ReleaseMoves,
) -> None:
    unpinned = server(PINNED, version=read.name, pinned=False)
    rules = {one.rule for one in SGLANG.refusals(unpinned, (BASE, chain()))}
    assert ("memory-moves" in rules) is (read.name in by_memory())
    assert (read.memory["H200"]["baseline"] != read.memory["H200"]["EAGLE3"]) is (read.name in by_memory())
    pinned = server(PINNED, "--mem-fraction-static=0.85", version=read.name)
    assert "memory-moves" not in {one.rule for one in SGLANG.refusals(pinned, (BASE, chain()))}


@pytest.mark.parametrize("version", by_memory())
def test_a_baseline_alone_is_asked_for_nothing(version: str) -> None:
    assert SGLANG.refusals(server(version=version, pinned=False), (BASE,)) == ()


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("0.5.6", "0.5.6"),
        ("v0.5.6.post2", "0.5.6.post2"),
        ("0.5.6+fork", "0.5.6"),
        ("0.5.23-cu129", "0.5.23"),
        ("0.5.12.post7", "0.5.12.post1"),
        ("999.0.0", moved_arguments.releases()[-1].name),
        ("0.4.9.post6", "0.4.9.post6"),
        ("0.4.4", None),
        ("nightly", None),
    ],
)
def test_a_build_of_a_release_moves_what_the_release_moves(version: str, name: str | None) -> None:
    read = moved_arguments.moves_of(version)
    assert (read.name if read else None) == name


def test_the_first_release_with_an_algorithm() -> None:
    arms = ("STANDALONE", "NGRAM", "DFLASH", "EAGLE3 adaptive", "DSPARK")
    assert [moved_arguments.first_with(arm) for arm in arms] == [
        "0.5.2", "0.5.3", "0.5.11", "0.5.11", "0.5.16",
    ]  # fmt: skip
