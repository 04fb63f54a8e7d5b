"""A pool that searches for its candidate: a run of purpose Search, and then a gate about what it has found."""

import random
from typing import Any

import pytest
from tests.support.answers import died, refused
from tests.support.messages import Says
from tests.support.searched import Served, answered, arms_of, searched, searching, shape_of
from tests.support.searched import begun as begin
from tests.support.stories import told
from tests.support.world import World

from paceline.core import ModelFacts, purpose_of
from paceline.plan.run.snapshot import RoundJob

LATENCY = Served("latency", 1)


def begun(*pools: str, **more: Any) -> World:
    """Up to the first round of the search."""
    manifest = searching(*(pools or ("latency",)))
    manifest["spec"].setdefault("benchmark", {}).update(more)
    return begin(manifest)


def ended(world: World, served: Served = LATENCY) -> None:
    searched(world, {"latency": served})
    world.servers_ready()


def verdict(world: World, number: int) -> dict[str, Any]:
    found: dict[str, Any] = world.runs("latency")[number]["status"]["verdict"]
    return found


@told
def test_a_search_finds_what_a_gate_promotes(world: World) -> None:
    """Thirteen candidates, four of them chains."""
    few = searching("latency", numSteps={"min": 1, "max": 4}, topK={"min": 1, "max": 4})
    few["spec"]["pools"][0]["search"]["numDraftTokens"] = {"min": 2, "max": 8}
    world.apply(few)
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()
    ended(world)


def test_it_finds_a_tree_that_a_gate_promotes() -> None:
    world = begun()
    assert purpose_of(world.runs("latency")[0]["spec"]) == "Search"
    ended(world)
    search, gate = world.runs("latency")
    found = search["status"]["verdict"]["winner"]
    assert search["status"]["verdict"].get("outcome", "") == ""
    assert purpose_of(gate["spec"]) == "Gate"
    assert [arm["name"] for arm in gate["spec"]["arms"]] == ["baseline", found]
    assert (world.serving("latency"), world.condition("Promoted")) == (found, "True AllPromoted")
    best = max(LATENCY.mean(arm) for arm in arms_of(world, "latency"))
    assert LATENCY.mean(found) > 0.97 * best


def test_it_starts_few_of_the_servers_of_a_grid() -> None:
    world = begun()
    ended(world)
    search, candidates = world.runs("latency")[0]["status"], len(arms_of(world, "latency")) - 1
    assert search["search"]["candidates"] == candidates > 40
    assert search["cost"]["serverStarts"] == search["search"]["serverStarts"] <= 0.3 * candidates
    assert search["search"]["points"] <= 0.2 * 4 * candidates


def test_it_says_how_the_arms_stand_and_what_comes_next() -> None:
    world = begun()
    for _ in range(3):
        answered(world, {"latency": LATENCY})
    now = world.runs("latency")[0]["status"]["search"]
    assert [arm["state"] for arm in now["internal"]["arms"]].count("best") == 1
    assert all({"ratio", "lower", "upper"} <= arm.keys() for arm in now["internal"]["arms"] if arm["arm"] != "baseline")
    assert now["next"]
    assert now["next"] in world.message("Measuring")


def test_its_rounds_share_their_prompts_and_the_gates_have_others() -> None:
    """What is found is found on these prompts: the gate asks others."""
    world = begun()
    ended(world)
    drawn: dict[str, set[int]] = {}
    for job in world.cluster.of("Job", component="round"):
        plan = RoundJob(job=job, pod=None).plan
        drawn.setdefault("search" if plan.cells else "gate", set()).add(plan.drawn)
    assert drawn["search"] == {-1}
    assert drawn["gate"] == {0, 1, 2}


def test_where_no_tree_is_faster_the_baseline_stays_and_no_gate_is_asked(says: Says) -> None:
    class Slow(Served):
        def ratio(self, arm: str, workload: int) -> float:
            return 1.0 if arm == "baseline" else 0.6 * super().ratio(arm, workload) / 2.5

    world = begun()
    ended(world, Slow("latency", 1))
    assert len(world.runs("latency")) == 1
    assert (verdict(world, 0)["outcome"], verdict(world, 0)["reason"]) == ("Reject", "NothingFaster")
    assert world.condition("Decided") == "True AllDecided"
    assert world.condition("Promoted") == "False BaselineFaster"
    says(world.message("Promoted"))


def test_a_budget_that_runs_out_gives_the_best_so_far_and_says_so(says: Says) -> None:
    """A round holds four GPUs for some 18 minutes here: 1.2 GPU-hours."""
    world = begun(budget={"gpuHours": "4"})
    ended(world)
    assert verdict(world, 0)["reason"] == "BudgetExhausted"
    says(verdict(world, 0)["message"])
    assert len(world.runs("latency")[0]["rounds"]) == 3
    found = verdict(world, 0)["winner"]
    assert [arm["name"] for arm in world.runs("latency")[1]["spec"]["arms"]] == ["baseline", found]


def test_a_tree_that_crashes_its_server_is_told_and_left_out() -> None:
    world = begun()
    answered(world, {"latency": LATENCY})
    tried = [arm for arm in arms_of(world, "latency") if arm.startswith("tree") and shape_of(arm)[1] == 4]
    searched(world, {"latency": LATENCY}, **dict.fromkeys(tried, died))
    world.servers_ready()
    search = world.runs("latency")[0]["status"]
    failed = [arm["arm"] for arm in search["search"]["internal"]["arms"] if arm["state"] == "failed"]
    assert failed
    assert set(failed) <= set(tried)
    assert search["verdict"]["winner"] not in tried
    assert f"{failed[0]} failed" in search["verdict"]["message"]


def test_a_baseline_that_cannot_be_measured_is_an_error() -> None:
    world = begun()
    ended_with = {"baseline": died}
    searched(world, {"latency": LATENCY}, **ended_with)
    assert verdict(world, 0)["outcome"] == "Error"
    assert world.condition("Decided") == "False BenchmarkError"


def test_other_ranges_are_searched_anew_and_what_was_promoted_serves_meanwhile() -> None:
    world = begun()
    ended(world)
    found = world.serving("latency")
    world.edit("depths up to 5", lambda spec: spec["pools"][0]["search"]["numSteps"].update(max=5))
    assert world.serving("latency") == found
    assert purpose_of(world.runs("latency")[-1]["spec"]) == "Search"
    assert world.condition("Promoted") == "True StillPromoted"


def test_another_gate_searches_nothing_anew() -> None:
    world = begun()
    ended(world)
    world.edit("a stricter gate", lambda spec: spec["gate"].update({"minImprovement": "6%"}))
    assert [purpose_of(run["spec"]) for run in world.runs("latency")] == ["Search", "Gate", "Gate"]


def test_a_search_that_is_deleted_takes_nothing_down() -> None:
    world = begun()
    ended(world)
    found = world.serving("latency")
    world.delete("BenchmarkRun", world.runs("latency")[0]["metadata"]["name"])
    assert world.serving("latency") == found
    assert purpose_of(world.runs("latency")[-1]["spec"]) == "Search"


@pytest.mark.parametrize("seed", range(3))
def test_killed_anywhere_it_ends_as_it_would_have(seed: int) -> None:
    """The operator dies after any of its actions; no round is measured twice."""
    undisturbed = begun()
    ended(undisturbed)
    chance, world = random.Random(seed), begun()
    world.crash = lambda actions: actions[: chance.randint(0, len(actions))] if chance.random() < 0.5 else actions
    ended(world)
    world.crash = lambda actions: actions
    ended(world)
    world.wait(15)
    assert world.serving("latency") == undisturbed.serving("latency")
    rounds = [[r["job"] for r in run["rounds"]] for run in world.runs("latency")]
    assert rounds == [[r["job"] for r in run["rounds"]] for run in undisturbed.runs("latency")]


def test_a_head_that_does_not_fit_is_named_where_it_stands() -> None:
    """None of the trees has a candidate of its own in the spec."""
    world = World()
    world.apply(searching("latency"))
    world.prefetch_ends(head=ModelFacts(architectures=("LlamaForCausalLMEagle3",), hidden_size=4096))
    assert world.condition("Stalled") == "True PreflightFailed"
    assert "spec.draft" in world.message("Stalled")
    assert not world.runs("latency")


class WithNgrams(Served):
    """N-grams draft for nothing, and are faster than every tree."""

    def ratio(self, arm: str, workload: int) -> float:
        return 2.5 if arm == "ngram" else super().ratio(arm, workload)

    def length(self, arm: str, dataset: str) -> float:
        return 2.4 if arm == "ngram" else super().length(arm, dataset)


class OtherHead(Served):
    """A tree of the other head is faster by a fifth than the same tree of the spec's."""

    def ratio(self, arm: str, workload: int) -> float:
        return super().ratio(arm.removesuffix("-other"), workload) * (1.2 if arm.endswith("-other") else 1.0)

    def length(self, arm: str, dataset: str) -> float:
        return super().length(arm.removesuffix("-other"), dataset)


def test_a_named_candidate_of_another_algorithm_is_among_the_arms() -> None:
    """No model of trees ranks it, so it is measured in any case."""
    world, manifest = World(), searching("latency")
    ngram = {"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {"numDraftTokens": 8}}
    manifest["spec"]["candidates"] = [ngram]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    ended(world, WithNgrams("latency", 1))
    assert verdict(world, 0)["winner"] == "ngram"
    assert (world.serving("latency"), world.condition("Promoted")) == ("ngram", "True AllPromoted")


def test_trees_of_another_head_are_candidates_beside_the_search() -> None:
    """Whatever their names and however many, they are measured in any case: a guess ranks the trees of spec.draft."""
    other = {"algorithm": "EAGLE3", "source": "hf://owner/other-head"}
    trees = [{"numSteps": steps, "topK": 4, "numDraftTokens": 8} for steps in (2, 3, 4)]
    manifest = searching("latency")
    manifest["spec"]["candidates"] = [
        {"name": f"tree-{tree['numSteps']}-4-8-other", "draft": other, "tree": tree} for tree in trees
    ]
    world = begin(manifest)
    ended(world, OtherHead("latency", 1))
    names = {candidate["name"] for candidate in manifest["spec"]["candidates"]}
    assert names < {arm["arm"] for arm in world.runs("latency")[0]["status"]["search"]["internal"]["arms"]}
    assert verdict(world, 0)["winner"] in names
    assert world.serving("latency") == verdict(world, 0)["winner"]


def test_a_head_that_crashes_every_server_ends_the_search_early(says: Says) -> None:
    world = begun()
    arms = arms_of(world, "latency")[1:]
    searched(world, {"latency": LATENCY}, **dict.fromkeys(arms, refused))
    search = world.runs("latency")[0]["status"]
    assert search["verdict"]["outcome"] == "Error"
    says(search["verdict"]["message"])
    assert search["cost"]["serverStarts"] <= 12


def test_over_several_loads_chains_come_first_and_no_arm_is_called_unsteady(says: Says) -> None:
    """The time of a step differs between loads: points at one say little of those at another."""
    world, manifest = World(), searching("latency")
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [1, 32]}]
    manifest["spec"]["benchmark"]["datasets"] = [
        {"name": name, "source": f"builtin://{name}"} for name in ("code", "chat")
    ]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    says(world.message("Measuring"))
    ended(world)
    assert "unsteady" not in verdict(world, 0)["message"]
