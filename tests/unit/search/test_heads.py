"""One search over the trees of two heads: what it costs and misses on few servers; on many: docs/search.md."""

from tests.unit.search.heads import OTHER, OWN, WORKLOADS, best_of, made, together, trees
from tests.unit.search.tables import mean

from paceline.core import BASELINE, Tree
from paceline.engines.grid import name_of
from paceline.search import Cell, Found, Option, Point, Question, proceed
from paceline.search.replay import replay
from paceline.search.steps import DEFAULT

MAKES = ("latency", "busy", "ranked", "paged")


def test_it_starts_fewer_servers_than_a_search_for_each_head() -> None:
    """And ends about as near to the best tree of both heads, among twice as many."""
    every = [(made(make, 3000), seed) for seed, make in enumerate(MAKES)]
    one = [together(heads, 0.02, seed) for heads, seed in every]
    two = [replay(heads.grid(trees(), (head,)), 0.02, seed) for heads, seed in every for head in (OWN, OTHER)]
    assert mean(found.starts for found in one) <= 0.85 * 2 * mean(found.starts for found in two)
    assert mean(len(found.points) for found in one) <= 0.75 * 2 * mean(len(found.points) for found in two)
    assert mean(found.regret for found in one) <= 0.02


def test_the_trees_that_several_heads_share_hold_nearly_the_best_of_twice_as_many() -> None:
    """0.3 % behind it in the mean of 180 servers."""
    behind = []
    for make in MAKES:
        heads = made(make, 3000)
        fewer = heads.grid(trees(OTHER), (OWN, OTHER)).speed_ups
        behind.append(max(best_of(heads).values()) - max(fewer.values()))
    assert mean(behind) <= 0.01


def question(*heads: str) -> Question:
    shapes = trees(OTHER)
    options = [Option(name=f"{tree} {head}", tree=tree, head=head) for head in heads for tree in shapes]
    return Question(options=(Option(name=BASELINE), *options), workloads=dict.fromkeys(WORKLOADS, 1.0))


def test_each_head_has_a_reference_of_its_own() -> None:
    step = proceed(question("a", "b"), ())
    assert not isinstance(step, Found)
    deep = Tree(num_steps=7, top_k=1, num_draft_tokens=8)
    assert {cell.arm for cell in step.cells} == {f"{deep} a", f"{deep} b"}


def test_an_adaptive_mode_of_a_head_that_is_behind_is_not_measured() -> None:
    """The second head gives 0.6 of the first's speed with each tree; it costs its reference and its best guess."""
    of_one, asked = made("latency", 3000).grid(trees(OTHER), (OWN,)), question("a", "b")
    options = (*asked.options, Option(name="adaptive a", head="a"), Option(name="adaptive b", head="b"))
    asked, points = Question(options=options, workloads=asked.workloads), list[Point]()
    while not isinstance(step := proceed(asked, points), Found):
        for cell in step.cells:
            tree = next(option.tree for option in options if option.name == cell.arm) or DEFAULT
            same = Cell(arm=BASELINE if cell.arm == BASELINE else name_of(tree), workload=cell.workload)
            speed = (of_one.throughput[same] or 0) * (0.6 if cell.arm.endswith(" b") else 1.0)
            length = of_one.lengths.get(same)
            points.append(Point(round=step.round, cell=cell, throughput=speed, accept_length=length))
    measured = {point.cell.arm for point in points}
    assert "adaptive a" in measured
    assert sum(arm.endswith(" b") for arm in measured) == 2
    assert "adaptive b" not in measured
    assert str(step.winner).endswith(" a")
