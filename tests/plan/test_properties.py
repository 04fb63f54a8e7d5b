"""What holds whatever happens: random histories of a small world."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from tests.support.answers import died, half_failed, nothing_accepted
from tests.support.planned import deployment_pools
from tests.support.world import World, example

from paceline.core import BASELINE
from paceline.core.manifest import Manifest
from paceline.evidence import question
from paceline.plan import deployment, run
from paceline.plan.deployment.servers import pod_template
from paceline.plan.objects import finished
from paceline.plan.simulation.cluster import Handle
from paceline.plan.simulation.reconciler import OURS, owned_handles
from paceline.plan.step import Action
from paceline.render.serving import ARM_LABEL

ROOM = {"gpu-0": 8, "gpu-1": 8, "gpu-2": 8, "gpu-3": 8}
"""More than is ever needed, so that what happens does not depend on who came first."""
quick = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=set(Phase) - {Phase.explain},
)


def started(**options: Any) -> World:
    """Two pools that are decided after two rounds or three."""
    world = World(nodes=ROOM, **options)
    manifest = example()
    manifest["spec"]["gate"] = {"decideAfterRounds": [2, 3]}
    world.apply(manifest)
    return world


def prefetch(world: World) -> None:
    if world.under_way("fetch"):
        world.prefetch_ends()


def ready(world: World) -> None:
    world.servers_ready()


def placed(world: World) -> list[Manifest]:
    """The Jobs of rounds under way whose pod has a node."""
    return [
        job
        for job in world.under_way("round")
        if any("nodeName" in pod["spec"] for pod in world.cluster.owned("Pod", job))
    ]


def measure(world: World) -> None:
    if placed(world):
        world.round_ends()


def spoil(world: World) -> None:
    if placed(world):
        world.round_ends(wide=died, narrow=half_failed)


def refuse(world: World) -> None:
    if placed(world):
        world.round_ends(wide=nothing_accepted)


def lose_a_round(world: World) -> None:
    if jobs := placed(world):
        world.round_dies(jobs[0]["metadata"]["labels"]["paceline.dev/pool"], 1, "killed")


def crash_a_server(world: World) -> None:
    world.server_exits("latency", 1, "CUDA error")


def wait(world: World) -> None:
    world.wait(31)


def change_the_image(world: World) -> None:
    image = world.spec()["engine"]["image"]
    world.edit("image", lambda spec: spec["engine"].update(image="b" if image != "b" else "a"))


def change_the_gate(world: World) -> None:
    world.edit("gate", lambda spec: spec["gate"].update({"minImprovement": "1%"}))


def change_the_nodes(world: World) -> None:
    """A server takes two nodes, or one again: another kind makes it, and two cannot be measured."""
    two = world.spec()["accelerator"].get("nodes") == 2
    world.edit("nodes", lambda spec: spec["accelerator"].update(nodes=1 if two else 2))


def suspend(world: World) -> None:
    world.edit("suspend", lambda spec: spec.update(suspend=True))


def resume(world: World) -> None:
    world.edit("resume", lambda spec: spec.update(suspend=False))


def delete_a_round(world: World) -> None:
    if jobs := world.under_way("round"):
        world.delete("Job", jobs[0]["metadata"]["name"])


def request(verb: str, pool: str, value: str = "@") -> "Event":
    """A person asks; each time with another token."""

    def ask(world: World) -> None:
        world.annotate(f"{verb}.paceline.dev/{pool}", f"{value}{world.cluster.now:%H%M}")

    return ask


Event = Callable[[World], None]
DEFAULT_TIMEOUTS: Sequence[Event] = (prefetch, ready, measure, measure, measure, ready)
POD_EVENTS: Sequence[Event] = (prefetch, ready, measure, spoil, refuse, lose_a_round, crash_a_server)
CHANGES: Sequence[Event] = (change_the_image, change_the_gate, change_the_nodes)
REQUESTS: Sequence[Event] = (
    *(request(verb, "latency") for verb in ("rollback", "abort", "retry", "promote-anyway")),
    *(request(verb, "throughput") for verb in ("rollback", "promote")),
)
EVENTS = st.sampled_from([*POD_EVENTS, wait, *CHANGES, *REQUESTS, suspend, resume, delete_a_round])
histories = st.builds(
    lambda n, more: [*DEFAULT_TIMEOUTS[:n], *more], st.integers(1, len(DEFAULT_TIMEOUTS)), st.lists(EVENTS, max_size=4)
)


@st.composite
def moments(draw: st.DrawFn) -> World:
    """A world to which something has just happened that the operator has not seen, some children gone."""
    world = started()
    *seen, unseen = draw(histories)
    for event in seen:
        event(world)
    world.away = True
    unseen(world)
    children = [key for key in world.cluster.objects if key[0] not in OURS]
    for key in draw(st.lists(st.sampled_from(children), max_size=2, unique=True)):
        if key in world.cluster.objects:
            world.cluster.delete(*key)
    return world


@quick
@given(moments())
def test_the_same_snapshot_gives_the_same_plan(world: World) -> None:
    for key in owned_handles(world.cluster):
        assert world.plan(key) == world.plan(key)


@quick
@given(moments(), st.randoms(use_true_random=False))
def test_the_order_of_children_changes_nothing(world: World, dice: random.Random) -> None:
    def shuffled(found: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(dice.sample(found, len(found)))

    now, seen = world.cluster.now, world.deployment_snapshot()
    mixed = replace(seen, children={kind: shuffled(found) for kind, found in seen.children.items()})
    assert deployment.plan(mixed, now) == deployment.plan(seen, now)
    for _, name in [key for key in owned_handles(world.cluster) if key[0] == "BenchmarkRun"]:
        of_run = world.run_snapshot(name)
        mixed_run = replace(of_run, jobs=shuffled(of_run.jobs), objects=shuffled(of_run.objects))
        assert run.plan(mixed_run, now) == run.plan(of_run, now)


OUTLAST = ("Delete", "Apply BenchmarkRound", "Apply PersistentVolumeClaim")


@quick
@given(moments())
def test_what_was_planned_and_done_is_not_planned_again(world: World) -> None:
    """A pass that only applied leaves nothing to do, until something else happens. A round that is recorded counts in
    the next pass, which is asked for at once; a claim that is made anew is found to be empty."""
    for key in owned_handles(world.cluster):
        actions = act(world, key)
        if actions and not any(action.startswith(OUTLAST) for action in actions):
            assert act(world, key) == []


def act(world: World, key: Handle) -> list[str]:
    """What one pass did."""
    before = len(world.told)
    world.reconcile(key)
    return [action for one in world.told[before:] for action in one.actions]


def held(world: World) -> list[Any]:
    return [pool.get("holds") for pool in world.status().get("pools", ())]


@quick
@given(histories)
def test_one_answer_is_looked_for_once_and_nothing_unproven_is_served(history: list[Event]) -> None:
    world = started()
    for event in history:
        event(world)
        assert one_round_each(world)
        assert one_run_a_question(world)
        assert all(proven(found) for kind in KINDS for found in world.cluster.of(kind))
        assert not set(names(world, KINDS[0])) & set(names(world, KINDS[1])), "no pool has servers of both kinds"
        assert each_change_once(world)
        if world.condition("Promoted") in ("True AllPromoted", "True StillPromoted"):
            still = world.condition("Promoted") == "True StillPromoted"
            assert all(promoted(world, pool["name"], still) for pool in world.status()["pools"])


@quick
@given(histories, st.lists(st.integers(0, 4), max_size=20))
def test_a_crash_after_any_action_changes_nothing_in_the_end(history: list[Event], crashes: list[int]) -> None:
    """`crashes`: how many of a pass's actions are carried out before the operator dies; then it lives on."""
    left = iter(crashes)

    def crash(actions: Sequence[Action]) -> Sequence[Action]:
        return actions[: next(left, len(actions))]

    calm, stormy = started(), started(crash=crash)
    for event in history:
        event(calm)
        event(stormy)
        assert outline(stormy) == outline(calm)


@quick
@given(histories, st.data())
def test_a_status_that_is_lost_moves_no_server_and_measures_nothing_again(
    history: list[Event], data: st.DataObject
) -> None:
    """One object's, as after a restore from a backup. A hold is lost with it, what a suspended pool keeps to, and which
    requests were handled."""
    world = started()
    for event in history:
        event(world)
    lost = data.draw(st.sampled_from(owned_handles(world.cluster)))
    assume(lost[0] == "BenchmarkRun" or not world.spec().get("suspend"))
    assume(lost[0] == "BenchmarkRun" or not any(held(world)))
    assume(lost[0] == "BenchmarkRun" or not world.cluster.objects[lost]["metadata"].get("annotations"))
    before = {key: found["metadata"]["generation"] for key, found in world.cluster.objects.items()}
    world.cluster.objects[lost].pop("status", None)
    world.settle("a status is lost", 0)
    assert {key: found["metadata"]["generation"] for key, found in world.cluster.objects.items()} == before


def test_a_runs_lost_status_is_read_again_from_its_rounds() -> None:
    world = started()
    for event in DEFAULT_TIMEOUTS:
        event(world)
    before = outline(world)
    for run_ in world.cluster.of("BenchmarkRun", pool="throughput"):
        del run_["status"]
    world.settle("a status is lost", 0)
    assert outline(world) == before
    assert world.outcome("throughput") == "Promote"


def one_round_each(world: World) -> bool:
    runs = [job["metadata"]["labels"]["paceline.dev/run"] for job in world.under_way("round")]
    return len(set(runs)) == len(runs)


def one_run_a_question(world: World) -> bool:
    open_ = [found for found in world.cluster.of("BenchmarkRun") if not finished(found)]
    questions = [(found["spec"]["pool"], question(found["spec"])) for found in open_]
    return len(set(questions)) == len(questions)


KINDS = ("Deployment", "LeaderWorkerSet")
"""That make servers."""


def each_change_once(world: World) -> bool:
    """No line of history is there twice, and the latest is of what serves."""
    for entry in world.status().get("pools", ()):
        history = entry.get("history", ())
        latest = history[0].get("revision") if history else None
        if len({(one["time"], one.get("revision")) for one in history}) < len(history):
            return False
        if latest != entry.get("serving", {}).get("revision"):
            return False
    return True


def names(world: World, kind: str) -> list[str]:
    return [found["metadata"]["name"] for found in world.cluster.of(kind)]


def proven(servers: Manifest) -> bool:
    """What makes servers says by whose evidence they serve a candidate."""
    arm = pod_template(servers)["metadata"]["labels"][ARM_LABEL]
    why = servers["metadata"]["annotations"]["paceline.dev/why"]
    return arm == BASELINE or any(words in why for words in PROVEN)


PROVEN = ("as fast as the baseline", "back to the last revision that served, by", "its evidence is", "a person has")
"""What makes a candidate's servers say so, one of these. A person may ask for one without evidence."""


def promoted(world: World, pool: str, still: bool) -> bool:
    """Its servers run the winner of a run that asked the question of now; where it is `still` promoted that of another
    question, which the spec renders as it did then."""
    serving = world.pool(pool)["serving"]
    evidence = world.cluster.objects["BenchmarkRun", serving["evidence"]["run"]]
    (servers,) = world.cluster.of("Deployment", pool=pool)
    labels = servers["spec"]["template"]["metadata"]["labels"]
    (now,) = (p for p in deployment_pools(world) if p.name == pool)
    return (
        evidence["status"]["verdict"]["winner"] == serving["arm"] == labels[ARM_LABEL]
        and (still or question(evidence["spec"]) == now.question)
        and (serving["revision"] in map(now.revision, now.spec.arms) or bool(now.remembered.holds))
    )


def outline(world: World) -> Mapping[Handle, Any]:
    """What there is, but for times, nodes and the order of things."""
    found: dict[Handle, Any] = {}
    for key, one in world.cluster.objects.items():
        status = one.get("status") or {}
        match key[0]:
            case "Deployment" | "LeaderWorkerSet":
                found[key] = one["spec"]
            case "SpeculativeDeployment" | "BenchmarkRun":
                said = {(c["type"], c["status"], c["reason"]) for c in status.get("conditions", ())}
                found[key] = (said, status.get("verdict"), status.get("summary"), status.get("armRounds"))
            case _:
                found[key] = None
    return found
