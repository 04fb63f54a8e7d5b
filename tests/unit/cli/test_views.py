"""What `kubectl paceline status` and `why` say of a deployment: golden files, one for each state."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support import golden
from tests.support.campaigns import LATENCY, THROUGHPUT
from tests.support.looked_at import looked_at, numbered
from tests.support.world import World, example
from tests.unit.cli.states import STATES, full, measuring_round_2_of_3, rolled_back, searching_round_4

from paceline.cli.live.advice import advice
from paceline.cli.live.deployment import observe_deployment
from paceline.cli.live.payload import payload
from paceline.cli.live.screen import plain_text
from paceline.cli.live.table import history_lines
from paceline.cli.live.tree import tree
from paceline.cli.live.why_text import paragraph

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_is_shown(state: Callable[[], World]) -> None:
    world = state()
    seen, now = looked_at(world, into_the_round=timedelta(minutes=5)), world.cluster.now
    shown = {
        "status": plain_text(tree(seen, now)),
        "history": plain_text(history_lines(seen.pools)),
        "why": {pool.name: paragraph(seen, pool, now) for pool in seen.pools},
    }
    golden.check(GOLDEN / f"{state.__name__}.yaml", numbered(shown), state.__doc__ or "")


def test_json_is_the_status_and_what_a_reader_would_compute() -> None:
    """Under the names that status has."""
    world = measuring_round_2_of_3()
    shown = payload(looked_at(world, into_the_round=timedelta(minutes=5)))
    assert {name: shown[name] for name in world.status() if name != "pools"} == {
        name: value for name, value in world.status().items() if name != "pools"
    }
    assert (shown["namespace"], shown["name"], shown["current"]) == ("models", "qwen3-coder-next", True)
    latency, throughput = shown["pools"]
    assert latency.items() >= world.pool("latency").items()
    run = world.runs("latency")[0]["metadata"]["name"]
    assert latency["run"] == {
        "name": run, "rounds": 1, "looks": (3, 5, 8), "nextLook": 3, "goingOn": True, "secondsPerRound": 1080,
        "secondsToNextLook": 2 * 1080 - 300, "secondsToLastLook": 7 * 1080 - 300,
        "gpuSeconds": 4 * (1200 + 300), "emulated": True, "waits": "",
    }  # fmt: skip
    assert throughput["run"]["secondsToNextLook"] is None


def test_a_pool_that_awaits_its_promotion_says_so_beside_one_that_was_rejected() -> None:
    """The condition of the whole tells of the worse one alone."""
    manifest = example()
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    slower = {
        arm: {name: speed / 2 if arm != "baseline" else speed for name, speed in of.items()}
        for arm, of in THROUGHPUT.items()
    }
    world = World(truths={"latency": LATENCY, "throughput": slower})
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends()
    assert (world.condition("Promoted"), world.outcome("latency")) == ("False BaselineFaster", "Promote")
    seen = looked_at(world)
    commands = [advice(seen, pool) for pool in seen.pools]
    promote = r"kubectl paceline promote qwen3-coder-next \w{10} --pool latency"
    assert re.fullmatch(promote, commands[0])
    assert commands[1] == ""


def test_json_of_a_search_has_its_arms_and_no_looks() -> None:
    world = searching_round_4()
    (pool,) = payload(looked_at(world))["pools"]
    search = world.runs("latency")[0]["status"]["search"]
    assert pool["run"].items() >= {"search": search, "rounds": 3, "looks": (), "nextLook": None}.items()
    assert pool["run"]["secondsToNextLook"] is pool["run"]["secondsToLastLook"] is None


def test_evidence_stays_emulated_when_its_run_is_deleted() -> None:
    world = rolled_back()
    now, seen = world.cluster.now, looked_at(world)
    manifest, runs = world._deployed(), world.all_runs()
    without = observe_deployment(manifest, [], {}, now)
    assert runs
    assert [pool.emulated for pool in without.pools] == [pool.emulated for pool in seen.pools]
    for each in (seen, without):
        assert "1.36x (emulated)" in plain_text(history_lines(each.pools))


def test_why_a_pool_that_may_lend_has_not_lent_yet() -> None:
    """The run's own status knows nothing of it."""
    world = full()
    shown = plain_text(tree(looked_at(world), world.cluster.now))
    assert re.search(r"Insufficient nvidia\.com/gpu; .* 2026-11-21T", shown)


def test_why_does_not_say_that_a_pool_serves_of_which_nothing_answers() -> None:
    world = full(replicas=1, min_serving=0)
    world.wait(1)
    found = looked_at(world)
    said = paragraph(found, found.pools[0], world.cluster.now)
    assert "latency: 0 of 1 servers, " in said


def test_a_terminal_is_sent_nothing_that_it_would_obey() -> None:
    """Square brackets are text, not rich's markup."""
    world = World()
    world.apply(example())
    world.prefetch_fails("[red]not[/red] ours")
    assert "[red]not[/red] ours" in plain_text(tree(looked_at(world), world.cluster.now))


def test_the_document_shows_what_is_printed() -> None:
    """docs/kubectl.md, on a terminal of 96 columns; other commits have other hashes."""
    page = Path(__file__).parents[3] / "docs" / "kubectl.md"
    shown = "\n".join(line.removeprefix("    ") for line in page.read_text().splitlines())
    measuring = looked_at(measuring_round_2_of_3(), into_the_round=timedelta(minutes=5))
    output = plain_text(tree(measuring, measuring_round_2_of_3().cluster.now), 96)
    assert without_hashes(output) in without_hashes(shown), output


def without_hashes(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{10}\b", "HASH", text)
