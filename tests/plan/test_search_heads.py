"""A pool that searches the trees of two heads at once."""

from collections.abc import Mapping
from typing import Any

from tests.support.answers import refused
from tests.support.searched import Served, arms_of, begun, searched, searching
from tests.support.stories import told
from tests.support.world import World

SECOND = {"name": "second", "draft": {"algorithm": "EAGLE3", "source": "hf://owner/second-head"}}
SMALL = {"numSteps": {"min": 1, "max": 4}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 8}}


class TwoHeads(Served):
    """`better`: by how much each tree of the second head is faster than the same tree of the first."""

    def __init__(self, better: float) -> None:
        super().__init__("latency", 1)
        self.better = better

    def ratio(self, arm: str, workload: int) -> float:
        head = arm.endswith("-second")
        return super().ratio(arm.removesuffix("-second"), workload) * (self.better if head else 1.0)

    def length(self, arm: str, dataset: str) -> float:
        """Faster because it accepts more, as far as a tree can."""
        length = super().length(arm.removesuffix("-second"), dataset)
        return 1 + (length - 1) * min(1.0, self.better) if arm.endswith("-second") else length


def both(**ranges: Any) -> dict[str, Any]:
    return searching("latency", heads=[SECOND], **ranges)


def ended(world: World, served: Served, **spoiled: Any) -> Mapping[str, Any]:
    """The status of the search."""
    searched(world, {"latency": served}, **spoiled)
    world.servers_ready()
    found: Mapping[str, Any] = world.runs("latency")[0]["status"]
    return found


def measured(status: Mapping[str, Any]) -> set[str]:
    return {arm["arm"] for arm in status["search"]["arms"]}


@told
def test_the_better_head_is_found_and_promoted(world: World) -> None:
    world.apply(both(**SMALL))
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()
    ended(world, TwoHeads(1.15))


def test_the_better_head_is_found_wherever_it_is() -> None:
    for better, second in ((1.2, True), (0.8, False)):
        world = begun(both())
        ended(world, TwoHeads(better))
        found = world.serving("latency")
        assert found.endswith("-second") == second
        head = world.runs("latency")[1]["spec"]["arms"][1]["draft"]["source"]
        assert (head == SECOND["draft"]["source"]) == second  # type: ignore[index]


def test_both_heads_have_as_many_trees_and_together_no_more_than_a_run_can_hold() -> None:
    world = begun(both())
    trees = [arm for arm in arms_of(world, "latency") if arm.startswith("tree")]
    assert len(trees) <= 47
    assert sum(arm.endswith("-second") for arm in trees) in (len(trees) // 2, (len(trees) + 1) // 2)


def test_a_head_that_is_clearly_behind_costs_two_starts() -> None:
    """Its reference and its best guess."""
    world = begun(both())
    status = ended(world, TwoHeads(0.6))
    assert len([arm for arm in measured(status) if arm.endswith("-second")]) == 2


def test_a_head_whose_servers_all_crash_does_not_stop_the_other() -> None:
    """Two of its trees fail, in three rounds; then it is left alone."""
    for second in (True, False):
        world = begun(both())
        crashing = [
            arm for arm in arms_of(world, "latency") if arm.startswith("tree") and arm.endswith("-second") == second
        ]
        status = ended(world, TwoHeads(1.0), **dict.fromkeys(crashing, refused))
        failed = [arm["arm"] for arm in status["search"]["arms"] if arm["state"] == "failed"]
        assert world.serving("latency").endswith("-second") != second
        assert set(failed) <= set(crashing)
        assert failed[0] in status["verdict"]["message"]
        assert len({point["arm"] for record in status["rounds"] for point in record["points"]} & set(crashing)) <= 2


def test_where_both_crash_it_ends_in_an_error() -> None:
    world = begun(both())
    crashing = [arm for arm in arms_of(world, "latency") if arm != "baseline"]
    status = ended(world, TwoHeads(1.0), **dict.fromkeys(crashing, refused))
    assert status["verdict"]["outcome"] == "Error"


def test_over_several_loads_chains_of_both_heads_come_first() -> None:
    manifest = both(**SMALL)
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [1, 32]}]
    manifest["spec"]["benchmark"]["datasets"] = [
        {"name": name, "source": f"builtin://{name}"} for name in ("code", "chat")
    ]
    world = begun(manifest)
    status = ended(world, TwoHeads(1.2))
    chains = {f"tree-{steps}-1-{steps + 1}{head}" for steps in (1, 2, 3) for head in ("", "-second")}
    assert chains <= measured(status)
    assert world.serving("latency").endswith("-second")
