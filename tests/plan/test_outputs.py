"""Stories of a pool whose candidates are to answer what the baseline answers."""

from typing import Any

from tests.support.answers import anew, nearly_alike, not_compared, otherwise
from tests.support.stories import told
from tests.support.world import World, example

from paceline.core import Parity
from paceline.core.manifest import Manifest
from paceline.plan.run.snapshot import RoundJob

PARITY = {"samples": 4, "maxTokens": 64}


def compared(pool: str) -> Manifest:
    manifest = example(pool)
    manifest["spec"].setdefault("benchmark", {})["parity"] = PARITY
    return manifest


def measuring(world: World, pool: str = "latency") -> None:
    world.apply(compared(pool))
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()


def parity(world: World, pool: str = "latency") -> dict[str, Any]:
    (verdict,) = world.runs(pool)[-1]["status"]["armVerdicts"]
    found = dict(verdict["parity"])
    memory = found.pop("internal", {})
    return found | memory


@told
def test_a_candidate_that_answers_otherwise(world: World) -> None:
    """However fast it is. The second round shows that the baseline agrees with itself, and it is rejected."""
    measuring(world)
    world.round_ends(wide=otherwise)
    assert world.outcome("latency") == ""
    world.round_ends(wide=otherwise)
    assert world.outcome("latency") == "Reject"
    assert world.condition("Promoted") == "False OutputsDiffer"
    assert world.serving("latency") == "baseline"
    assert parity(world) == {
        "rounds": 2, "samples": 4, "settled": 4, "differ": 2, "identical": 4, "nearTies": 0, "diverged": 4,
        "firstDivergence": 12, "largestGap": "2.40",
    }  # fmt: skip


@told
def test_a_candidate_that_answers_alike_but_for_near_ties(world: World) -> None:
    """Near ties are reported and keep nobody back."""
    measuring(world)
    for _ in range(3):
        world.round_ends(wide=nearly_alike)
    world.servers_ready()
    assert world.condition("Promoted") == "True AllPromoted"
    assert parity(world) == {
        "rounds": 3, "samples": 4, "settled": 4, "differ": 0, "identical": 9, "nearTies": 3, "diverged": 0,
        "firstDivergence": 31, "largestGap": "0.06",
    }  # fmt: skip


@told
def test_outputs_cannot_be_compared(world: World) -> None:
    """What was asked is not known, so nothing is promoted and nobody is blamed; two rounds are enough to see it."""
    measuring(world)
    world.round_ends(wide=not_compared)
    world.round_ends(wide=not_compared)
    assert world.outcome("latency") == "Error"
    assert world.condition("Promoted") == "False NotDecided"
    assert "HTTP 400" in world.runs("latency")[-1]["status"]["verdict"]["message"]
    assert parity(world) == {"rounds": 0, "unknown": "baseline on prompt 0: HTTP 400: logprobs are disabled"}


@told
def test_outputs_cannot_be_compared_once(world: World) -> None:
    """The round is no evidence, and another one takes its place."""
    measuring(world)
    world.round_ends(wide=not_compared)
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert world.serving("latency") == "wide"


@told
def test_a_baseline_that_answers_anew_each_time(world: World) -> None:
    """The candidate is not blamed for leaving what nobody can hold on to, and cannot be promoted either."""
    measuring(world)
    for _ in range(3):
        world.round_ends(baseline=anew, wide=otherwise)
    assert world.outcome("latency") == "Inconclusive"
    assert world.runs("latency")[-1]["status"]["verdict"]["reason"] == "OutputsUnstable"
    assert parity(world)["settled"] == 0


def test_what_status_says_is_of_all_rounds() -> None:
    world = World()
    measuring(world)
    world.round_ends(wide=nearly_alike)
    world.round_ends(wide=otherwise)
    assert parity(world) == {
        "rounds": 2, "samples": 4, "settled": 4, "differ": 0, "identical": 5, "nearTies": 1, "diverged": 2,
        "firstDivergence": 12, "largestGap": "2.40",
    }  # fmt: skip


def test_what_a_round_is_asked_is_what_the_pool_asks() -> None:
    world = World()
    measuring(world)
    (job,) = world.under_way("round")
    assert RoundJob(job=job, pod=None).plan.parity == Parity(samples=4, max_tokens=64)
    assert world.runs("latency")[-1]["spec"]["gate"]["parity"] == {"samples": 4, "maxTokens": 64}


def test_to_ask_for_it_is_another_question() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.edit("outputs are to be compared", lambda spec: spec.setdefault("benchmark", {}).update(parity=PARITY))
    assert [run["status"]["conditions"][0]["reason"] for run in world.runs("latency")] == ["Superseded", "Measuring"]
