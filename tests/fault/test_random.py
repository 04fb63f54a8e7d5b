"""Eventually stable reconciliation: whatever goes wrong, and in whatever order, once it has stopped going wrong the
desired state is reached and stays.

The moves are drawn by Hypothesis, always the same ones; PACELINE_SIMULATIONS says how many games are played. A failure
is shrunk to the shortest game that fails, and its trace printed.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fault.nature import what
from tests.fault.oracle import broken_promises, ending
from tests.fault.stories import CHANGED, PROMOTED, another_image, example, should, the_published_image
from tests.fault.virtual import run
from tests.fault.world import NAME, World
from tests.support.memory import Crash, Exit, MemoryApi, Write, conflict, lost

from paceline.evidence.failures import FEW
from paceline.kube import Manifest, WatchEvent, ref_of
from paceline.kube.resources import DEPLOYMENT, JOB, POD, SERVICE

GAMES = int(os.environ.get("PACELINE_SIMULATIONS", "25"))
LATENCY = f"Deployment models/{NAME}-latency"


@dataclass
class Game:
    """A world and what is about to go wrong in it."""

    world: World
    answers: list[Callable[[], BaseException]] = field(default_factory=list)
    """What the next writes that change something are answered with, though they happened."""
    refusals: int = 0
    dropped: int = 0
    """How many watch events get lost from now on."""
    failing: int = 0
    """How many rounds fail from now on."""
    failed: int = 0
    changed: bool = False

    def life(self, world: World) -> MemoryApi:
        return MemoryApi(world.cluster, before=self.before, after=self.after, deliver=self.deliver)

    def before(self, _: Write) -> None:
        if self.refusals:
            self.refusals -= 1
            raise conflict()

    def after(self, _: Write) -> None:
        if self.answers:
            raise self.answers.pop()()

    def deliver(self, event: WatchEvent) -> Iterable[WatchEvent]:
        if self.dropped:
            self.dropped -= 1
            return ()
        return (event,)

    def spoil(self, _: Manifest) -> Exit | None:
        if self.failed >= self.failing:
            return None
        self.failed += 1
        return Exit(137)

    def end_troubles(self) -> None:
        self.answers, self.refusals, self.dropped = [], 0, 0
        for process in self.world.lives:
            process.api.thaw()
        relist(self)
        self.world.edit(lambda spec: spec.update(suspend=False))


def crash_at_the_next_write(game: Game) -> None:
    game.answers.append(Crash)


def crash(game: Game) -> None:
    game.world.lives[-1].api.dead = True


def lose_the_next_response(game: Game) -> None:
    game.answers.append(lost)


def refuse_the_next_writes(game: Game) -> None:
    game.refusals = 3


def drop_events(game: Game) -> None:
    game.dropped = 4


def relist(game: Game) -> None:
    """All watches break, and what they missed is forgotten."""
    game.world.cluster.compact()
    for process in game.world.lives:
        process.api.disconnect()


def break_all_watches(game: Game) -> None:
    game.world.lives[-1].api.disconnect()


def a_second_operator(game: Game) -> None:
    """Until one of the two crashes."""
    game.world.operate(game.life)


def a_round_fails(game: Game) -> None:
    game.failing = min(game.failing + 1, FEW - 1)


def remove_one(kinds: str) -> Callable[[Game], None]:
    def move(game: Game) -> None:
        cluster = game.world.cluster
        found = [one for resource in (POD,) for one in cluster.list(resource).items if what(one) == kinds]
        if found:
            cluster.delete(ref_of(random.choice(found), cluster.kinds))

    return move


def a_server_is_evicted(game: Game) -> None:
    remove_one("server")(game)


def scale_by_hand(game: Game) -> None:
    cluster = game.world.cluster
    for servers in cluster.list(DEPLOYMENT).items:
        cluster.update(servers | {"spec": servers["spec"] | {"replicas": 0}}, manager="kubectl-edit")


def delete_the_service(game: Game) -> None:
    cluster = game.world.cluster
    for service in cluster.list(SERVICE).items:
        cluster.delete(ref_of(service, cluster.kinds))


def suspend(game: Game) -> None:
    game.world.edit(lambda spec: spec.update(suspend=True))


def resume(game: Game) -> None:
    game.world.edit(lambda spec: spec.update(suspend=False))


def change_the_image(game: Game) -> None:
    game.changed = not game.changed
    game.world.edit(another_image if game.changed else the_published_image)


MOVES: Mapping[str, Callable[[Game], None]] = {
    move.__name__: move
    for move in (
        crash,
        crash_at_the_next_write,
        lose_the_next_response,
        refuse_the_next_writes,
        drop_events,
        relist,
        break_all_watches,
        a_second_operator,
        a_round_fails,
        a_server_is_evicted,
        scale_by_hand,
        delete_the_service,
        suspend,
        resume,
        change_the_image,
    )
}


async def play(moves: list[tuple[str, int]]) -> Game:
    async with World() as world:
        game = Game(world)
        world.nature.spoil = game.spoil
        world.operate(*[game.life] * 100)
        world.apply(example("latency"))
        for name, pause in moves:
            await asyncio.sleep(pause)
            world.note(name.replace("_", " "))
            MOVES[name](game)
        await asyncio.sleep(1)
        world.note("no more troubles")
        game.end_troubles()
        await world.settle()
    return game


def wrong(game: Game) -> list[str]:
    """What is not as it would be without troubles."""
    world = game.world
    is_, should_be = ending(world.cluster), should(CHANGED if game.changed else PROMOTED)
    status = world.found()["status"]
    conditions = {c["type"]: c["reason"] for c in status["conditions"]}
    desired = {"Ready": "Serving", "CacheReady": "Cached", "Measuring": "NothingToMeasure"} | {
        "Decided": "AllDecided",
        "Promoted": "AllPromoted",
    }
    found = broken_promises(world.cluster)
    if conditions != desired:
        found.append(f"conditions are {conditions}")
    if is_.objects[LATENCY]["spec"] != should_be.objects[LATENCY]["spec"]:
        found.append(f"{LATENCY} is not what was asked for")
    if f"Service models/{NAME}-latency" not in is_.objects:
        found.append("there is no Service")
    if any(job.get("status", {}).get("active") for job in world.cluster.list(JOB).items):
        found.append("a Job is still going on")
    return found


@settings(max_examples=GAMES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 90)), max_size=10))
def test_the_desired_state_is_reached(moves: list[tuple[str, int]]) -> None:
    game = run(play(moves))
    assert not wrong(game), "\n".join([*wrong(game), *game.world.trace[-60:]])
