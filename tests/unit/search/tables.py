"""Tables for the tests of the search."""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from paceline.search import replay

SPECBUNDLE = sorted((Path(__file__).parent / "specbundle").glob("*.json"))
CHAINS = ((1, 1, 2), (2, 1, 3), (3, 1, 4), (5, 1, 6), (7, 1, 8))


def specbundle(file: Path) -> replay.Grid:
    return replay.grid(json.loads(file.read_text()))


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
