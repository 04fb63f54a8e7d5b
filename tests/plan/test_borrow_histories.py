"""Random histories of a pool that may lend a server on a full node: what is lent goes to a run, and all comes back."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.plan import test_properties as properties
from tests.plan.test_borrow import FULL, LATENCY, borrowing, in_use, rival
from tests.support.world import World

from paceline.plan.objects import finished
from paceline.plan.step import Action

Event = Callable[[World], None]
RIVAL = ("Pod", "rival")


def a_rival_comes_or_goes(world: World) -> None:
    if RIVAL in world.cluster.objects:
        world.delete(*RIVAL)
    else:
        rival(world)
        world.settle("a rival comes", 0)


def a_minute(world: World) -> None:
    world.wait(1)


def delete_the_run(world: World) -> None:
    if runs := world.runs("latency"):
        world.delete("BenchmarkRun", runs[-1]["metadata"]["name"])


def abort(world: World) -> None:
    world.annotate("abort.paceline.dev/latency", f"{len(world.told)}")


def borrow_or_wait(world: World) -> None:
    lends = world.spec()["benchmark"].get("capacityPolicy") == "Borrow"
    policy = "Wait" if lends else "Borrow"
    world.edit(policy, lambda spec: spec["benchmark"].update(capacityPolicy=policy))


BEGIN: Sequence[Event] = (properties.prefetch, properties.ready, a_minute, properties.measure)
EVENTS: Sequence[Event] = (
    properties.ready,
    properties.measure,
    properties.lose_a_round,
    properties.crash_a_server,
    a_minute,
    properties.wait,
    properties.change_the_gate,
    properties.change_the_image,
    properties.suspend,
    properties.resume,
    properties.delete_a_round,
    a_rival_comes_or_goes,
    delete_the_run,
    abort,
    borrow_or_wait,
)
histories = st.builds(
    lambda n, more: [*BEGIN[:n], *more], st.integers(2, len(BEGIN)), st.lists(st.sampled_from(EVENTS), max_size=6)
)


@properties.quick
@given(histories, st.lists(st.integers(0, 4), max_size=20))
def test_what_is_lent_is_lent_to_a_run_and_all_comes_back(history: list[Event], crashes: list[int]) -> None:
    """`crashes`: how many of a pass's actions are carried out before the operator dies; then it lives on."""
    left = iter(crashes)

    def crash(actions: Sequence[Action]) -> Sequence[Action]:
        return actions[: next(left, len(actions))]

    world = World(nodes=FULL, crash=crash)
    world.apply(borrowing())
    for event in history:
        event(world)
        check(world)
    if RIVAL in world.cluster.objects:
        world.delete(*RIVAL)
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    for _ in range(3):
        properties.ready(world)
    assert asked_for(world) in (None, 2)
    assert not any(pool.get("internal", {}).get("borrowed") for pool in world.status().get("pools", ()))


def check(world: World) -> None:
    """No more accelerators in use than there are; never fewer servers asked for than must serve; and one fewer than the
    spec says only for a run that goes on."""
    assert in_use(world) <= 8
    asked = asked_for(world)
    if asked == 1:
        (pool,) = world.status()["pools"]
        run = world.cluster.objects["BenchmarkRun", pool["internal"]["loan"]["run"]]
        assert (pool["internal"]["borrowed"], finished(run)) == (1, False)
        assert world.spec()["benchmark"]["capacityPolicy"] == "Borrow"
    else:
        assert asked in (None, 2)


def asked_for(world: World) -> int | None:
    """By the Deployment; None while there is none."""
    servers = world.cluster.objects.get(LATENCY)
    return servers["spec"]["replicas"] if servers else None
