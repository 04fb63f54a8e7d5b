"""A pool that searches, served by what an earlier search or a person has chosen: what is measured next takes nothing
down that it has not measured."""

from tests.support.messages import Says
from tests.support.searched import Served, answered, begun, searched, searching
from tests.support.world import World

from paceline.core import purpose_of

POOL = "latency"
SMALL = {"numSteps": {"min": 1, "max": 5}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 16}}
WIDE = {"name": "wide", "tree": {"numSteps": 3, "topK": 4, "numDraftTokens": 8}}


class Fixed(Served):
    """`ratios`: of single arms, over what their shape says."""

    def __init__(self, **ratios: float) -> None:
        super().__init__("latency", 1)
        self.ratios = {name.replace("_", "-"): ratio for name, ratio in ratios.items()}

    def ratio(self, arm: str, workload: int) -> float:
        return self.ratios.get(arm) or super().ratio("tree-3-4-8" if arm == "wide" else arm, workload)

    def length(self, arm: str, dataset: str) -> float:
        return super().length("tree-3-4-8" if arm in ("wide", "adaptive", "incumbent") else arm, dataset)


def ended(world: World, served: Served) -> None:
    searched(world, {POOL: served})
    world.servers_ready()


def one_that_was_found_and_another_in_question() -> tuple[World, str, str]:
    """The first serves; wider ranges were searched, and the gate of what they hold is under way."""
    world = begun(searching(POOL, **SMALL))
    ended(world, Fixed())
    first = world.serving(POOL)
    world.edit("deeper", lambda spec: spec["pools"][0]["search"]["numSteps"].update(max=6))
    search = world.runs(POOL)[-1]
    deep = {arm["name"]: 4.0 for arm in search["spec"]["arms"] if arm["name"].startswith("tree-6")}
    served = Fixed(**{name.replace("-", "_"): ratio for name, ratio in deep.items()})
    while purpose_of(world.runs(POOL)[-1]["spec"]) == "Search":
        answered(world, {POOL: served})
    found = world.runs(POOL)[-1]["spec"]["arms"][1]["name"]
    assert found in deep
    return world, first, found


def test_a_reject_of_what_was_found_leaves_what_serves() -> None:
    """That was in no round of this gate."""
    world, first, found = one_that_was_found_and_another_in_question()
    ended(world, Fixed(**{found.replace("-", "_"): 0.9}))
    assert world.runs(POOL)[-1]["status"]["verdict"]["outcome"] == "Reject"
    assert world.serving(POOL) == first


def test_a_lost_status_is_rebuilt_though_the_gate_is_about_another_tree() -> None:
    world, first, _ = one_that_was_found_and_another_in_question()
    world._deployed()["status"] = {}
    world.settle("the status is lost", 1)
    assert world.serving(POOL) == first


def test_a_budget_of_one_round_is_named_and_counts_what_was_measured(says: Says) -> None:
    manifest = searching(POOL)
    manifest["spec"].setdefault("benchmark", {})["budget"] = {"gpuHours": "0.5"}
    world = begun(manifest)
    ended(world, Fixed())
    verdict = world.runs(POOL)[0]["status"]["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Inconclusive", "BudgetExhausted")
    says(verdict["message"])


def test_where_a_changed_engine_has_no_faster_tree_its_baseline_is_compared_with_what_serves() -> None:
    """The search found nothing; the change is accepted all the same."""
    world = begun(searching(POOL, **SMALL))
    ended(world, Fixed())
    served = world.serving(POOL)
    world.edit("another release", lambda spec: spec["engine"].update(version="0.5.24", image="sglang:v0.5.24"))
    trees = [arm["name"] for arm in world.runs(POOL)[-1]["spec"]["arms"][1:]]
    slow = Fixed(**{name.replace("-", "_"): 0.8 for name in trees}, incumbent=0.9)
    while world.under_way("round") and purpose_of(world.runs(POOL)[-1]["spec"]) == "Search":
        answered(world, {POOL: slow})
    assert (world.serving(POOL), world.condition("ChangePending")) == (served, "True Measuring")
    assert [arm["name"] for arm in world.runs(POOL)[-1]["spec"]["arms"]] == ["baseline", "incumbent"]
    ended(world, slow)
    assert (world.serving(POOL), world.condition("ChangePending")) == ("baseline", "")
    assert not world.under_way("round")
