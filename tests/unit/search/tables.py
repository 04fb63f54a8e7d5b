"""Tables for the tests of the search."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.support import replay, rooflines, strangers

SPECBUNDLE = sorted((Path(__file__).parent / "specbundle").glob("*.json"))
CHAINS = ((1, 1, 2), (2, 1, 3), (3, 1, 4), (5, 1, 6), (7, 1, 8))


def specbundle(file: Path) -> replay.Grid:
    return replay.grid(json.loads(file.read_text()))


def made(make: str, trees: int = 47, seed: int = 0, told: float | None = 0.0) -> replay.Grid:
    """A server of a regime of `rooflines` or of a family of `strangers`, with 47 or 136 trees: of one grid after the
    other, as `seed` goes on."""
    fixed = {47: (rooflines.GRID_47, rooflines.OTHER_47), 136: (rooflines.GRID_136,)}[trees]
    shapes = (*fixed, strangers.drawn(trees, random.Random(f"{make} {seed}")))[seed % (len(fixed) + 1)]
    if make in rooflines.REGIMES:
        return replay.grid(rooflines.table(shapes, rooflines.REGIMES[make], seed=seed))
    if make == "others":
        return replay.grid(rooflines.other_table(shapes, seed=seed))
    return replay.grid(strangers.table(make, shapes, seed=seed, told=told))


def chains(**speed_ups: float) -> dict[str, Any]:
    """Two workloads and five chains; speed-ups by steps (`s3=1.4`), 1.1 where none is given."""
    baseline = {"code": 200.0, "chat": 100.0}
    trees = []
    for steps, branches, tokens in CHAINS:
        ratio = speed_ups.get(f"s{steps}", 1.1)
        length = (1 - 0.7 ** (steps + 1)) / 0.3
        points = {w: {"throughput": speed * ratio, "acceptLength": length} for w, speed in baseline.items()}
        trees.append({"numSteps": steps, "topK": branches, "numDraftTokens": tokens, "points": points})
    return {"baseline": baseline, "trees": trees}


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cost(grid: replay.Grid, found: replay.Replayed) -> float:
    """Of the grid measured three times."""
    return len(found.points) / (3 * len(grid.trees) * len(grid.workloads))


def mean(values: Iterable[float]) -> float:
    return fmean(values)
