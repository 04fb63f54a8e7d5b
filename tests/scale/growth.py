"""How memory and a pass grow with the deployments there are: `python -m tests.scale.growth`.

A deployment with two promoted pools, as a story of tests/fault has left it, is put into the operator's own stores under
so many names; then each of a sample is looked at three times, and the last pass, in which nothing is to be done, is
measured. No API server and no network: what is left is the operator's own.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.fault.stories import BOTH_PROMOTED, tell_once
from tests.fault.world import NAME
from tests.support.memory import MemoryApi

from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.controller.reconcile import reconcile
from paceline.kube import Manifest
from paceline.kube.resources import JOB, POD
from paceline.plan.step import Event
from paceline.render import Settings

SIZES = (200, 1000, 5000)
SAMPLE = 100
PAGE = 50
BEGINNING = 1_000_000
"""Versions of the copies begin here: later than any of the story."""


class Answers(MemoryApi):
    """Takes every write for done, and keeps nothing."""

    version = 10 * BEGINNING

    def __init__(self, known: "WatchedCluster | None" = None) -> None:
        self.known = known

    async def apply(self, manifest: Manifest, **_: Any) -> Manifest:
        assert self.known
        metadata = manifest["metadata"]
        old = self.known.get(manifest["kind"], metadata["namespace"], metadata["name"]) or {"metadata": {}}
        self.version += 1
        return old | manifest | {"metadata": old["metadata"] | metadata | {"resourceVersion": str(self.version)}}

    async def replace_status(self, manifest: Manifest) -> Manifest:
        return await self.apply(manifest)

    async def get(self, ref: Any) -> Manifest | None:
        assert self.known
        return self.known.get(ref.resource.kind, ref.namespace, ref.name)


def objects(runs: bool) -> list[str]:
    """As JSON: what two promoted pools have left, but for rounds, which are not watched; without `runs`, only what
    serves."""
    cluster = tell_once(BOTH_PROMOTED).cluster
    kept = [each.manifest for each in cluster._objects.values() if each.manifest["kind"] != BENCHMARK_ROUND.kind]
    measured = (JOB.kind, BENCHMARK_RUN.kind)
    of_rounds = [
        m for m in kept if m["kind"] in measured or (m["kind"] == POD.kind and "job-name" in str(m["metadata"]))
    ]
    return [json.dumps(manifest) for manifest in kept if runs or manifest not in of_rounds]


def copies(number: int, texts: Sequence[str]) -> WatchedCluster:
    api = Answers()
    known = api.known = WatchedCluster(api)
    version = BEGINNING
    for begin in range(0, number, PAGE):
        page = []
        for n in range(begin, min(begin + PAGE, number)):
            for text in texts:
                version += 1
                copy = json.loads(text.replace(NAME, f"served-{n}").replace('"uid": "', f'"uid": "{n}-'))
                copy["metadata"] = copy["metadata"] | {"resourceVersion": str(version)}
                page.append(copy)
        for manifest in page:
            known.saw(manifest)
    return known


async def passes(known: WatchedCluster, number: int) -> float:
    """Milliseconds of the processor for a pass that finds nothing to do."""

    async def record(regarding: Manifest, event: Event) -> None:
        pass

    keys = [
        ObjectKey(SPECULATIVE_DEPLOYMENT.plural, "models", f"served-{n * (number // SAMPLE)}") for n in range(SAMPLE)
    ]
    spent = 0.0
    for key in keys:
        for _ in range(3):
            begin = time.process_time()
            await reconcile(
                known, key, Settings(image="paceline"), record, lambda: datetime.now(UTC).replace(microsecond=0)
            )
            last = time.process_time() - begin
        spent += last
    return 1000 * spent / len(keys)


def resident() -> float:
    """MiB."""
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def measure(number: int, texts: Sequence[str]) -> dict[str, float]:
    before = resident()
    known = copies(number, texts)
    return {
        "deployments": number,
        "objects": sum(len(reflector.store) for reflector in known.reflectors),
        "empty_mib": before,
        "stores_mib": resident() - before,
        "pass_ms": asyncio.run(passes(known, number)),
    }


def main(argv: Sequence[str]) -> int:
    sizes = [int(word) for word in argv] or SIZES
    for runs in (False, True):
        texts = objects(runs)
        print(f"{len(texts)} objects of each, {'with' if runs else 'without'} finished runs")
        for size in sizes:
            with get_context("spawn").Pool(1) as child:
                found = child.apply(measure, (size, texts))
            print(json.dumps({name: round(value, 2) for name, value in found.items()}), flush=True)
    return 0


assert RECONCILED_KINDS
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
