"""What each scenario writes, by kind, exactly, and what a reconcile without work asks for. `budget.yaml` holds the
figures: one request more or less is a change to be read."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fault.scenarios import MEASURED, SCENARIOS
from tests.fault.stories import PROMOTED, Story, tell_once
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE
from tests.support import golden
from tests.support.memory import MemoryApi

from paceline.controller.cluster import ObjectKey
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.kube import Listing, Manifest, Ref, Resource

BUDGET = Path(__file__).parent / "budget.yaml"


def of(scenario: str) -> Story:
    """The story of the matrix: told once for both."""
    return SCENARIOS[scenario].story


STORIES: Mapping[str, Story] = {
    "first deploy, up to the first round": MEASURED,
    "first deploy and promotion": of("first deploy and promotion"),
    "first deploy and rejection": of("rejection"),
    "first deploy with a loan": of("loan"),
    "another image, and promotion": of("promotion of another image"),
    "an upgrade, and a verdict on it": of("an upgrade is compared with what serves"),
    "another image of which no server starts: back": of("back to the image before"),
    "a looser gate: judged on the rounds there are": of("judged again"),
    "a candidate that is never ready: held": of("held"),
    "rollback by a person": of("rollback by a person"),
    "fallback by the guard": of("fallback by the guard"),
    "first deploy, search and promotion": of("search and promotion"),
    "superseded in its first round": of("superseded in its first round"),
    "suspended in its first round": of("suspended in its first round"),
    "suspended while a candidate serves": of("suspended while a candidate serves"),
    "deleted": of("deleted"),
    "the operator starts again": Story(lambda world: None, after=PROMOTED),
    "the operator starts again, of another release": of("another release of the operator at rest"),
}


def written(story: Story) -> dict[str, int]:
    """`apply Deployment` → how many requests changed something; `in vain`: those that changed nothing."""
    (process,) = tell_once(story).lives
    found = Counter(f"{write.verb} {write.ref.resource.kind}" for write in process.api.writes)
    events = sum(count for kind, count in found.items() if kind.endswith(" Event"))
    in_vain = {"in vain": vain} if (vain := process.api.attempts - found.total()) else {}
    return {"all but Events": found.total() - events, **in_vain, **dict(sorted(found.items()))}


class Counting(MemoryApi):
    """Knows what it was asked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: Counter[str] = Counter()

    async def get(self, ref: Ref) -> Manifest | None:
        self.asked[f"get {ref.resource.kind}"] += 1
        return await super().get(ref)

    async def list(self, resource: Resource, *args: Any, **kwargs: Any) -> Listing:
        self.asked[f"list {resource.kind}"] += 1
        return await super().list(resource, *args, **kwargs)


def asked() -> dict[str, dict[str, int]]:
    """Kind → what one reconcile asks for, when there is nothing to do."""

    async def look() -> dict[str, dict[str, int]]:
        async with tell_once(PROMOTED).twin() as world:
            world.operate(lambda world: Counting(world.cluster))
            await world.settle()
            (process,) = world.lives
            api, found = process.api, {}
            assert isinstance(api, Counting)
            (ended,) = world.cluster.list(BENCHMARK_RUN).items
            for kind, name in ((SPECULATIVE_DEPLOYMENT, NAME), (BENCHMARK_RUN, ended["metadata"]["name"])):
                api.asked.clear()
                await process.reconcile(ObjectKey(kind.plural, NAMESPACE, name))
                found[f"one reconcile of a {kind.kind}"] = dict(sorted(api.asked.items()))
            return found

    return run(look())


def test_each_scenario_writes_exactly_this() -> None:
    writes = {name: written(story) for name, story in STORIES.items()}
    golden.check(BUDGET, {"writes": writes, "requests without work": asked()}, __doc__ or "")
