"""Hundreds of deployments that have nothing to do: an operator that starts among them writes nothing."""

import asyncio
import json
from typing import Any

from tests.fault.stories import PROMOTED, tell_once
from tests.fault.virtual import run
from tests.fault.world import NAMESPACE, World
from tests.support.memory.cluster import Stored

from paceline.controller.reconcile import REST_SECONDS
from paceline.kube import APPLIED, Ref, stamped

DEPLOYMENTS = 500
HOUR = 3600.0


def of_another(value: Any, number: int) -> Any:
    """The same in a namespace of its own."""
    text = json.dumps(value)
    for before, after in (('"namespace": "', '"'), (".", ".svc"), ("jit/", "/")):
        text = text.replace(f"{before}{NAMESPACE}{after}", f"{before}{NAMESPACE}-{number}{after}")
    return json.loads(text)


def many(one: World) -> World:
    """As if each deployment had lived through the story of `one`."""
    world = one.twin()
    applied = {write.ref: write.manifest for write in one.lives[0].api.writes if write.verb == "apply"}
    for ref, stored in list(world.cluster._objects.items()):
        if ref.namespace != NAMESPACE:
            continue
        for number in range(1, DEPLOYMENTS):
            manifest = of_another(stored.manifest, number)
            if wanted := applied.get(ref):
                wanted = of_another(wanted, number)
                annotations = wanted["metadata"].pop("annotations")
                if rest := {key: value for key, value in annotations.items() if key != APPLIED}:
                    wanted["metadata"]["annotations"] = rest
                manifest["metadata"]["annotations"][APPLIED] = stamped(wanted)["metadata"]["annotations"][APPLIED]
            theirs = Ref(ref.resource, f"{NAMESPACE}-{number}", ref.name)
            world.cluster._objects[theirs] = Stored(manifest, stored.managers)
    world.nature.step = lambda: False  # type: ignore[method-assign]
    return world


def test_an_hour_in_which_nobody_writes() -> None:
    one = tell_once(PROMOTED)

    async def idle() -> tuple[int, int]:
        async with many(one) as world:
            version = world.cluster.version
            world.operate()
            await asyncio.sleep(HOUR)
            (process,) = world.lives
            assert process.api.attempts == 0, world.trace[:10]
            return process.passes, world.cluster.version - version

    passes, changes = run(idle())
    assert passes >= DEPLOYMENTS * (1 + HOUR / REST_SECONDS)
    assert changes == 0
