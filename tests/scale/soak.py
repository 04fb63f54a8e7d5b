"""Eight hours of making, promoting, changing and deleting deployments, and whether the operator leaks: `make soak`.

The API server, the bench and the nature of `make bench-scale`, and what a garbage collector does. Twenty deployments
stay from the beginning to the end; ten more come and go, with new names in each turn. At the end of a turn, when all is
quiet, the operator's memory, files and threads are looked at, what is left in the API server is counted, and so are
its writes in a while in which nothing happens. Writes docs/reports/soak.md, and exits with 1 if something grows.

`--hours 0.33` for a shorter one, which says less: the report says how long it was.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict

from tests.scale import machine
from tests.scale.leak import ENOUGH, Sample, growing, report
from tests.scale.world import NAMESPACE, ROOT, Bench, Operator, world

from paceline.controller.kinds import BENCHMARK_RUN, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import ref_of
from paceline.kube.resources import KINDS as BUILT_IN
from paceline.kube.resources import Resource

STAY, COME = 20, 10
IDLE_SECONDS = 20.0
REPORT = ROOT / "docs" / "reports" / "soak.md"
OWNED: Sequence[Resource] = (
    BENCHMARK_RUN,
    *(
        resource
        for resource in BUILT_IN.values()
        if resource.plural
        in (
            "jobs",
            "pods",
            "deployments",
            "services",
            "controllerrevisions",
            "networkpolicies",
            "poddisruptionbudgets",
            "persistentvolumeclaims",
        )
    ),
)
"""Kinds that the operator makes, and pods."""


async def collect(soak: Bench) -> int:
    """What a garbage collector does: deletes what has owners of which none is left; and what a kubelet does: lets pods
    go that were deleted. How much is there afterwards."""
    while True:
        found = [one for kind in (SPECULATIVE_DEPLOYMENT, *OWNED) for one in await of(soak, kind)]
        there = {one["metadata"]["uid"] for one in found}
        orphans = [
            one
            for one in found
            if (owners := one["metadata"].get("ownerReferences")) and there.isdisjoint(owner["uid"] for owner in owners)
        ]
        for one in orphans:
            await soak.api.delete(ref_of(one, RECONCILED_KINDS), uid=one["metadata"]["uid"])
        going = [one["metadata"]["name"] for one in found if "deletionTimestamp" in one["metadata"]]
        if going:
            now = ("--grace-period=0", "--force", "--ignore-not-found", "--wait=false")
            await asyncio.to_thread(soak.server.kubectl, "delete", "pods", "-n", NAMESPACE, *going, *now, check=False)
        if not orphans and not going:
            return len(found)


async def of(soak: Bench, kind: Resource) -> Sequence[dict]:  # type: ignore[type-arg]
    listing = await soak.api.list(kind, NAMESPACE)
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **one} for one in listing.items]


async def turn(soak: Bench, operator: Operator, number: int, come: int) -> None:
    names = [f"soak-{number}-{each}" for each in range(come)]

    def serve(arm: str) -> bool:
        return all(soak.serving(name) == arm for name in names)

    await soak.each(names, soak.create)
    await soak.until("all serve the baseline", lambda: serve("baseline"), 300)
    await soak.each(names, lambda name: soak.set(name, suspend=False))
    await soak.until("all serve the winner", lambda: serve("wide"), 300)
    loose = {"gate": {"confidence": "90%", "minImprovement": "1%"}}
    await soak.each(names, lambda name: soak.set(name, suspend=False, **loose))
    await soak.quiet(operator, 2)
    await soak.until("all serve the winner again", lambda: serve("wide"), 300)
    deployments = await of(soak, SPECULATIVE_DEPLOYMENT)
    for one in deployments:
        if one["metadata"]["name"] in names:
            await soak.api.delete(ref_of(one, RECONCILED_KINDS), uid=one["metadata"]["uid"])
    for name in names:
        soak.heard.pop(name, None)
        soak.observed.pop(name, None)


async def sample(soak: Bench, operator: Operator, began: float) -> Sample:
    objects = await collect(soak)
    await soak.quiet(operator, 3)
    objects = await collect(soak)
    operator.meter.begin()
    await asyncio.sleep(IDLE_SECONDS)
    spent = operator.meter.cost()
    pid = operator.process.pid
    files, threads = machine.open_files(pid), machine.threads(pid)
    return Sample(
        minutes=(time.monotonic() - began) / 60,
        resident=machine.memory(pid)[0],
        files=files,
        threads=threads,
        objects=objects,
        writes=spent.writes,
    )


async def soaked(soak: Bench, options: argparse.Namespace) -> list[Sample]:
    samples: list[Sample] = []
    with ExitStack() as operators:
        operator = operators.enter_context(soak.operator("soak"))
        await soak.until("the operator leads", soak.leads, 60)
        stay = [f"stays-{each}" for each in range(options.stay)]
        await soak.each(stay, soak.create)
        await soak.until("all serve", lambda: all(soak.serving(name) == "baseline" for name in stay), 600)
        await soak.each(stay, lambda name: soak.set(name, suspend=False))
        await soak.until("all promoted", lambda: all(soak.serving(name) == "wide" for name in stay), 600)
        began, number = time.monotonic(), 0
        while time.monotonic() - began < 3600 * options.hours:
            await turn(soak, operator, number, options.come)
            samples.append(await sample(soak, operator, began))
            print(json.dumps(asdict(samples[-1])), flush=True)
            number += 1
            if operator.process.poll() is not None:
                raise RuntimeError("the operator has ended")
    log = (soak.directory / "soak.log").read_text()
    if "Traceback" in log:
        raise RuntimeError(f"a traceback in the operator's log:\n{log[log.index('Traceback') :][:3000]}")
    return samples


async def run(options: argparse.Namespace) -> list[Sample]:
    async with world({}, None) as soak:
        return await soaked(soak, options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--stay", type=int, default=STAY, help="deployments that stay")
    parser.add_argument("--come", type=int, default=COME, help="that come and go in each turn")
    parser.add_argument("--write", action="store_true", help="write the report")
    options = parser.parse_args()
    samples = asyncio.run(run(options))
    said = growing(samples)
    if len(samples) < ENOUGH:
        print(*said)
        return 1
    text = report(samples, said, options.come, options.stay)
    print(text)
    if options.write:
        REPORT.write_text(text)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
