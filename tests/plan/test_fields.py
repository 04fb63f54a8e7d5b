"""Every field of the spec matters, and an edit that is taken back leaves nothing (after Acto, SOSP '23).

`fields.yaml` says for each field what its edit in `field_table` does; a field that is added to the CRD needs a row.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support import golden
from tests.support.edited import LATER, LEFT, begun, objects, rest, status, told, watched
from tests.support.edits import changed
from tests.support.field_edits import BASES, fields
from tests.support.field_table import EDITS
from tests.support.world import World

from paceline.api.problems import problems
from paceline.core.names import RUN_LABEL

EFFECTS = Path(__file__).parent / "fields.yaml"
ROWS = [(base, path) for base, edits in EDITS.items() for path in edits]


def in_the_schema(path: str) -> str:
    """`pools[].name` of `pools.0.name`."""
    return re.sub(r"\.\d+", "[]", path)


def replaced_by(spec: Mapping[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(old: dict[str, Any]) -> None:
        old.clear()
        old.update(deepcopy(dict(spec)))

    return change


def edit(world: World, base: str, path: str) -> None:
    after = changed({"spec": deepcopy(world.spec())}, (f"spec.{path}", EDITS[base][path]))["spec"]
    world.edit(path, replaced_by(after))


def effect(base: str, path: str) -> list[str]:
    """What people see of the edit."""
    if refused := problems(changed(BASES[base](), (f"spec.{path}", EDITS[base][path]))):
        return [f"refused: {one.path}" for one in refused]
    world, twin = begun(base), begun(base)
    edit(world, base, path)
    for one in (world, twin):
        LATER.get(base, lambda _: None)(one)
    was, is_ = objects(twin), objects(world)
    kinds = {name.partition(" ")[0] for name in was.keys() | is_.keys() if was.get(name) != is_.get(name)}
    changes = [f"changes {kind}" for kind in sorted(kinds)]
    said = told(twin)
    says = [f"says {kind} {text.partition(':')[0]}" for kind, text in told(world).items() if said.get(kind) != text]
    otherwise = watched(world) != watched(twin)
    return [*changes, *says, *(["servers are judged otherwise"] if otherwise else [])]


def test_every_field_has_its_row() -> None:
    assert {in_the_schema(path) for _, path in ROWS} == set(fields())


def test_an_edit_of_any_field_is_seen() -> None:
    seen = {f"{in_the_schema(path)} ({base})": effect(base, path) for base, path in ROWS}
    assert [field for field, found in seen.items() if not found] == []
    golden.check(EFFECTS, seen, "What the edit of each field changes, says or is refused for.")


@pytest.mark.parametrize(("base", "path"), ROWS, ids=str)
def test_an_edit_that_is_taken_back_leaves_what_there_was(base: str, path: str) -> None:
    """After all that was asked because of it has been answered; or at once, if it is compared with what serves first:
    afterwards the way back is another such change."""
    world, twin = begun(base), done(base)
    edit(world, base, path)
    if world.under_way("fetch"):
        world.prefetch_ends()
    if not world.condition("ChangePending"):
        rest(world)
    world.edit("taken back", replaced_by(twin.spec()))
    rest(world)
    assert lasting(objects(world)) == lasting(objects(twin))
    assert status(world) == status(twin)
    assert says(world) == says(twin)


@cache
def done(base: str) -> World:
    """Where nobody has edited anything."""
    world = begun(base)
    rest(world)
    return world


def says(world: World) -> Mapping[str, Any]:
    """What people read, word for word: conditions, and what each pool is at."""
    found = world.status()
    said = {one["type"]: (one["status"], one["reason"], one["message"]) for one in found["conditions"]}
    return said | {pool["name"]: pool.get("internal", {}).get("progress") for pool in found["pools"]}


def lasting(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what is left, and what goes with a run that is left."""
    return {
        name: one
        for name, one in found.items()
        if name.partition(" ")[0] not in LEFT and RUN_LABEL not in one["metadata"]["labels"]
    }
