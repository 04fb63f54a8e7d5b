"""`paceline gate NAME --wait`: exit codes by state; and, beside the real operator in virtual time, that it waits."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
from tests.fault.stories import PROMOTED, another_image, example, tell_once
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support.looked_at import looked_at, numbered
from tests.support.memory import MemoryApi
from tests.support.messages import Says
from tests.support.stories import measuring, promoted
from tests.support.world import START
from tests.support.world import World as Simulated
from tests.unit.cli.states import (
    SLOWER,
    aborted,
    awaiting_promote,
    both_promoted,
    change_measured,
    change_not_measured,
    change_rejected,
    change_undecided,
    measuring_round_2_of_3,
    no_room,
    not_seen,
    rejected,
    searched_and_measuring,
    searching_round_4,
    stalled,
    suspended,
)

from paceline.cli.gate_live import wait
from paceline.cli.live.deployment import ObservedDeployment, observe_deployment
from paceline.cli.live.poll import looks
from paceline.cli.live.verdicts import exit_code, verdict_results, verdicts_payload
from paceline.cli.live.why_text import paragraph
from paceline.kube import Manifest, Ref, Unavailable

HOUR = 3600
EVERY = 60.0


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (not_seen, 13),
        (both_promoted, 0),
        (awaiting_promote, 0),
        (rejected, 10),
        (no_room, 13),
        (searching_round_4, 13),
        (searched_and_measuring, 13),
        (suspended, 13),
        (aborted, 14),
        (stalled, 14),
        (change_measured, 13),
        (change_rejected, 10),
        (change_undecided, 11),
        (change_not_measured, 12),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_code_tells_the_state(state: Callable[[], Simulated], code: int, says: Says) -> None:
    found = verdict_results(looked_at(state()))
    assert exit_code(found) == code
    says(numbered(str(found[0])))


def of(*pools: tuple[str, Manifest], generation: int = 1, stalled: str = "") -> ObservedDeployment:
    """A deployment with such entries of status."""
    status = {"status": "True", "message": "it is", "lastTransitionTime": "2026-11-21"}
    decided = {"type": "Decided", "reason": "AllDecided", "observedGeneration": 1, **status}
    conditions = [decided, *([{"type": "Stalled", "reason": stalled, **status}] if stalled else [])]
    manifest = {
        "metadata": {"name": "coder", "namespace": "models", "generation": generation},
        "spec": {"pools": [{"name": name} for name, _ in pools]},
        "status": {
            "observedGeneration": 1,
            "conditions": conditions,
            "pools": [{"name": name, **entry} for name, entry in pools],
        },
    }
    return observe_deployment(manifest, (), {}, START)


def verdict(outcome: str) -> Manifest:
    return {"verdict": {"outcome": outcome, "message": "said so", "evidence": {"run": "a-run"}}}


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (of(("a", verdict("Promote"))), 0),
        (of(("a", verdict("Reject"))), 10),
        (of(("a", verdict("Inconclusive"))), 11),
        (of(("a", verdict("Error"))), 12),
        (of(("a", verdict("Promote")), generation=2), 13),
        (of(("a", {})), 13),
        (of(("a", {}), stalled="ServerFailed"), 14),
        (of(("a", {"internal": {"progress": {"step": "NotMeasurable", "message": "two nodes"}}})), 14),
        (of(("a", verdict("Promote")), stalled="ServerFailed"), 0),
        (of(("a", verdict("Promote")), ("b", verdict("Reject"))), 10),
        (of(("a", verdict("Error")), ("b", verdict("Reject"))), 12),
        (of(("a", verdict("Promote")), ("b", {})), 13),
    ],
)
def test_of_several_pools_the_highest_code_counts(found: ObservedDeployment, code: int) -> None:
    assert exit_code(verdict_results(found)) == code


def another_target(spec: Manifest) -> None:
    spec["target"].update(revision="next")


def arguments_that_no_engine_has(spec: Manifest) -> None:
    spec["engine"].update(args=["--nonsense"])


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (another_target, 13),
        (arguments_that_no_engine_has, 14),
    ],
    ids=["another target", "an invalid spec"],
)
def test_the_verdict_on_an_earlier_spec_is_none_while_this_one_cannot_be_measured(
    edit: Callable[[Manifest], None], code: int, says: Says
) -> None:
    """The operator has read the spec and downloads models, or can do nothing with it; status keeps the old verdict."""
    world = Simulated()
    promoted(world, "latency")
    world.edit("another spec", edit)
    found = looked_at(world)
    assert found.seen
    assert found.pools[0].stored["verdict"]["outcome"] == "Promote"
    assert exit_code(verdict_results(found)) == code
    says(verdict_results(found)[0].message.partition(": ")[0])


def test_why_says_that_a_verdict_is_of_an_earlier_spec(says: Says) -> None:
    world = Simulated(truths={"latency": SLOWER})
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    told = []
    for generation in (1, 2):
        found = looked_at(world)
        assert found.generation == generation
        told.append(paragraph(found, found.pools[0], world.cluster.now))
        world.edit("another target", another_target)
    says(*(re.findall(r"[^.]*Reject", text)[0] for text in told))


@pytest.mark.parametrize(("reason", "code"), [("ServerFailed", 13), ("InvalidSpec", 14)])
def test_a_round_goes_on_although_another_pool_is_stalled(reason: str, code: int) -> None:
    """Stalled is of the whole deployment: what is measured may still count, unless it is of a former spec."""
    measuring = looked_at(measuring_round_2_of_3())
    at_rest = of(("latency", {}), stalled=reason)
    (pool,) = at_rest.pools
    going_on = replace(at_rest, pools=(replace(pool, progress=measuring.pools[0].progress),))
    assert [exit_code(verdict_results(one)) for one in (at_rest, going_on)] == [14, code]


def test_one_pool_can_be_asked_for() -> None:
    found = of(("a", verdict("Promote")), ("b", verdict("Reject")))
    assert [exit_code(verdict_results(found, pool)) for pool in ("a", "b")] == [0, 10]
    with pytest.raises(ValueError, match=r"--pool: .* a, b"):
        verdict_results(found, "c")


def test_json_has_the_pools_and_the_worst_of_them() -> None:
    found = of(("a", verdict("Promote")), ("b", verdict("Reject")))
    shown = verdicts_payload(found, verdict_results(found))
    assert (shown["outcome"], [pool["outcome"] for pool in shown["pools"]]) == ("Reject", ["Promote", "Reject"])
    assert shown["pools"][0] == {
        "name": "a", "outcome": "Promote", "winner": "", "speedup": None, "lower": None, "upper": None,
        "message": "said so", "benchmarkRun": "a-run", "emulated": False,
    }  # fmt: skip


# Beside the operator.


def waited(
    act: Callable[[World], object], longest: float, after: World | None = None
) -> tuple[int, list[str], ObservedDeployment]:
    """Exit code, what was told meanwhile, and the deployment in the end."""

    async def story() -> tuple[int, list[str], ObservedDeployment]:
        heard: list[str] = []
        async with after.twin() if after else World() as world:
            act(world)
            world.operate()
            seen = looks(MemoryApi(world.cluster), NAMESPACE, NAME, EVERY)
            found = await wait(seen, None, longest, heard.append)
        assert found is not None
        return exit_code(verdict_results(found)), heard, found

    return run(story())


def test_it_waits_for_the_verdict_and_says_what_goes_on() -> None:
    code, heard, found = waited(lambda world: world.apply(example("latency")), 24 * HOUR)
    assert code == 0
    assert any("round 2 of 2" in line for line in heard)
    assert str(verdict_results(found)[0]).startswith("latency: Promote: wide ")
    assert str(verdict_results(found)[0]).endswith("(emulated)")


def test_it_waits_no_longer_than_it_may() -> None:
    code, _, found = waited(lambda world: world.apply(example("latency")), 120)
    assert code == 13
    assert [pool.status.verdict for pool in found.pools] == [None]


def test_the_verdict_on_an_earlier_spec_is_none_on_this_one(says: Says) -> None:
    """The spec is edited and the gate asked in the same moment: the operator has not even read it."""
    before = tell_once(PROMOTED)
    run_before = before.found()["status"]["pools"][0]["verdict"]["evidence"]["run"]
    code, heard, found = waited(lambda world: world.edit(another_image), 24 * HOUR, after=before)
    assert code == 0
    says(heard[0])
    assert verdict_results(found)[0].run != run_before


class Deaf(MemoryApi):
    """Does not answer the first time."""

    asked = 0

    async def get(self, ref: Ref) -> Manifest | None:
        self.asked += 1
        if self.asked == 1:
            raise Unavailable(0, "ClientConnectorError", "connection refused")
        return await super().get(ref)


def test_a_server_that_does_not_answer_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def first(seen: AsyncIterator[ObservedDeployment]) -> ObservedDeployment:
        return await anext(seen)

    world = tell_once(PROMOTED)
    found = run(first(looks(Deaf(world.cluster), NAMESPACE, NAME, EVERY)))
    assert exit_code(verdict_results(found)) == 0
    assert "(connection refused)" in capsys.readouterr().err
