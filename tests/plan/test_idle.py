"""What one pass takes where nothing is to be done: how much of the planner it enters; and it is linear in pools."""

import sys
from collections.abc import Callable
from copy import deepcopy
from types import FrameType
from typing import Any

import pytest
from tests.support.edits_of_specs import in_production
from tests.support.searched import searching
from tests.support.world import World, example

from paceline.plan import deployment
from paceline.plan.deployment.pool import Pool

PLAN = "/paceline/plan/"


def counted(call: Callable[[], object]) -> tuple[int, int, int]:
    """Files and functions of `plan` that it enters, and calls from one of its files into another."""
    files, functions, across = set[str](), set[tuple[str, str]](), 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal across
        code, caller = frame.f_code, frame.f_back
        if event != "call" or PLAN not in code.co_filename or code.co_name.startswith("<"):
            return
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_qualname))
        from_plan = caller is not None and PLAN in caller.f_code.co_filename
        across += bool(from_plan and caller and caller.f_code.co_filename != code.co_filename)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), len(functions), across


def builds(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a Pool is built."""
    made, build = 0, Pool.__init__

    def count(self: Pool, **fields: Any) -> None:
        nonlocal made
        made += 1
        build(self, **fields)

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "__init__", count)
        call()
    return made


def idle_pass(world: World) -> Callable[[], object]:
    """Kept results are those of the pass before, as they are in the operator."""
    deployment.plan(world.deployment_snapshot(), world.cluster.now)
    snapshot = world.deployment_snapshot()
    return lambda: deployment.plan(snapshot, world.cluster.now)


def test_an_idle_pass_is_short() -> None:
    world = in_production("latency")
    world.wait(1)
    files, functions, across = counted(idle_pass(world))
    assert (files <= 27, functions <= 286, across <= 200) == (True, True, True), (files, functions, across)


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("pools", [1, 2, 4, 8])
def test_each_pool_is_built_once(monkeypatch: pytest.MonkeyPatch, pools: int, search: bool) -> None:
    world, manifest = World(), searching("latency") if search else example("latency")
    (first,) = manifest["spec"]["pools"]
    manifest["spec"]["pools"] = [{**deepcopy(first), "name": f"pool{number}"} for number in range(pools)]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    assert builds(idle_pass(world), monkeypatch) == pools
