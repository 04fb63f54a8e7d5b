"""docs/states.md has what a pool serves in each state after each event, as the planner decides it, and its rules of
choice. `PACELINE_GOLDEN=write pytest tests/plan/test_transitions.py` writes both anew.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import generated
from tests.support.edits_of_specs import AS_THE_BASELINE, added
from tests.support.guard import NARROW_IS_SLOWER, dropped, promoted_anyway
from tests.support.planned import deployment_pools
from tests.support.stories import measured
from tests.support.world import World, example

from paceline.plan.deployment import choose

DOCUMENT = Path(__file__).parents[2] / "docs" / "states.md"
KEY = "{}.paceline.dev/latency"


def measuring() -> World:
    """The baseline serves, and wide and narrow are compared with it."""
    world = World(truths=NARROW_IS_SLOWER)
    manifest = example("latency")
    manifest["spec"] |= {"guard": {"action": "Fallback"}}
    manifest["spec"]["engine"]["env"] = AS_THE_BASELINE
    added(manifest["spec"])
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


def promoted() -> World:
    world = measuring()
    measured(world)
    return world


def rolled_back() -> World:
    world = promoted()
    world.annotate(KEY.format("rollback"), "@monday")
    world.servers_ready()
    return world


def fallen() -> World:
    world = promoted()
    stops_paying(world)
    return world


def anyway() -> World:
    return promoted_anyway()


STATES: tuple[Callable[[], World], ...] = (measuring, promoted, rolled_back, fallen, anyway)


def wide_wins(world: World) -> None:
    if world.under_way("round"):
        measured(world)


def stops_paying(world: World) -> None:
    dropped(world)
    world.servers_ready()


def crashes(world: World) -> None:
    world.server_exits("latency", 2, "error")
    world.servers_ready()


def asked(verb: str) -> Callable[[World], None]:
    def ask(world: World) -> None:
        (pool,) = deployment_pools(world)
        named = {"promote": "wide", "promote-anyway": "narrow"}.get(verb)
        revision = pool.revision(pool.arms[named]) if named else ""
        world.annotate(KEY.format(verb), f"{revision}@tuesday")
        world.servers_ready()

    return ask


def edited(what: str, change: Callable[[Any], object]) -> Callable[[World], None]:
    def edit(world: World) -> None:
        world.edit(what, change)
        world.servers_ready()

    return edit


EVENTS: Mapping[str, Callable[[World], None]] = {
    "a verdict for wide": wide_wins,
    "its server crashes": crashes,
    "it stops paying": stops_paying,
    "`promote`": asked("promote"),
    "`promote-anyway` narrow": asked("promote-anyway"),
    "`rollback`": asked("rollback"),
    "`abort`": asked("abort"),
    "`retry`": asked("retry"),
    "`suspend`": edited("suspend", lambda spec: spec.update(suspend=True)),
    "another argument": edited("args", lambda spec: spec["engine"]["args"].append("--schedule-conservativeness=1.1")),
}


def serves(world: World) -> str:
    """`wide (Promoted); held: narrow (Crashed)`."""
    target = world.memory("latency")["target"]
    holds = [f"{one.get('arm') or 'the question'} ({one['reason']})" for one in world.pool("latency").get("holds", ())]
    held = f"; held: {', '.join(holds)}" if holds else ""
    return f"{target['arm']} ({target['reason']}){held}"


def table() -> str:
    """What is the same in every state is a line below."""
    found: dict[str, dict[str, str]] = {}
    for build in STATES:
        before = serves(build())
        found[before] = {}
        for event, happens in EVENTS.items():
            world = build()
            happens(world)
            after = serves(world)
            found[before][event] = "–" if after == before else after
    assert len(found) == len(STATES)
    same = {event: cells for event in EVENTS if len(cells := {row[event] for row in found.values()}) == 1}
    columns = [event for event in EVENTS if event not in same]
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    lines += [f"| {state} | {' | '.join(row[event] for event in columns)} |" for state, row in found.items()]
    always = "; ".join(f"{event}: {''.join(cells)}" for event, cells in same.items())
    return "\n".join([*lines, "", f"In each state: {always}."]) + "\n"


def rules() -> str:
    found = re.findall(r"^    (\w+) +(\S.*)$", choose.__doc__ or "", re.MULTILINE)
    assert [name for name, _ in found] == [rule.__name__ for rule in choose.RULES]
    rows = "".join(f"| `{name}` | {what} |\n" for name, what in found)
    return f"| rule | what it gives |\n| --- | --- |\n{rows}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["rules", "transitions"])
def test_the_document_has_what_the_planner_does(name: str) -> None:
    told = {"rules": rules, "transitions": table}[name]()
    generated.is_in(DOCUMENT, name, f"\n{told}\n", by="tests/plan/test_transitions.py")
