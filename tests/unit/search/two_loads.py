"""Two pools of one head at a low and a high load: two searches by themselves, and the second one from the points that
the servers of the first have given at its load (0075). `python -m tests.unit.search.two_loads` counts it for
docs/search.md."""

import math
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import pstdev
from typing import Any

from tests.support import rooflines
from tests.unit.search.tables import mean, percentile

from paceline.search import replay
from paceline.search.question import Cell, Found, Point, Question
from paceline.search.steps import proceed

DOCUMENT = Path("docs/search.md")
BEGIN, END = "<!-- two loads -->", "<!-- end of two loads -->"
LOW = rooflines.Ranges(verify=(0.001, 0.01), knee=(0.05, 0.5))
NOISES = (0.01, 0.02, 0.03)
START = DRIFT = 0.01
"""Of the second table: between starts of a server, for all its workloads; and of a walk from round to round."""
OFFSETS = (0.0, 0.01, -0.01)
"""By how much the second search's own servers are faster than the first's, in ln: another limit of requests, say."""
SERVERS = range(5000, 5040)


UNSTEADY = "With 1 % between starts, a drift of 1 % from round to round, and points of 2 %:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Of the pool with the low load, and of both together."""

    regret: float
    starts: int
    points: int
    starts_of_both: int
    points_of_both: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsteady:
    """What a table has not: starts that differ, rounds that drift, other servers in the second search."""

    seed: int
    start: float = 0.0
    drift: float = 0.0
    offset: float = 0.0

    def seen(self, point: Point, number: int) -> Point:
        """`number`: of its round, counted over both searches."""
        if point.throughput is None:
            return point
        start = random.Random(f"{self.seed} {number} {point.cell.arm}").gauss(0, self.start)
        walk = sum(random.Random(f"{self.seed} {before}").gauss(0, self.drift) for before in range(number + 1))
        return replace(point, throughput=point.throughput * math.exp(start + walk + self.offset))


def searched(
    make: str, seed: int, cv: float, *, shared: bool, start: float = 0.0, drift: float = 0.0, offset: float = 0.0
) -> Searched:
    low, high = MAKES[make](seed)
    servers = Unsteady(seed=seed, start=start, drift=drift)
    first, points = _run(high, cv, seed, high.question(), (), servers)
    neighbour, rounds = high.trees.get(first.winner or ""), 1 + max(point.round for point in points)
    question = replace(low.question(), neighbour=neighbour)
    brought = tuple(_measured_too(low, points, cv, seed, servers)) if shared else ()
    found, own = _run(low, cv, seed + 10**6, question, brought, replace(servers, offset=offset), rounds)
    return Searched(
        regret=replay.regret(low.speed_ups, found.winner or "baseline"),
        starts=_starts(own),
        points=len(own),
        starts_of_both=_starts(own) + _starts(points),
        points_of_both=len(own) + len(brought) + len(points),
    )


def _measured_too(
    grid: replay.Grid, points: Sequence[Point], cv: float, seed: int, servers: Unsteady
) -> Iterator[Point]:
    """As the operator: the first time that an arm is measured on a dataset, at the other load too."""
    last, seen = max(point.round for point in points), set[Cell]()
    for point in points:
        if point.cell not in seen:
            seen.add(point.cell)
            found = replay.measured(grid, point.cell, point.round, cv, seed + 10**6)
            yield replace(servers.seen(found, point.round), round=point.round - last - 1)


def _run(
    grid: replay.Grid,
    cv: float,
    seed: int,
    question: Question,
    brought: Sequence[Point],
    servers: Unsteady,
    before: int = 0,
) -> tuple[Found, list[Point]]:
    own = list[Point]()
    while not isinstance(step := proceed(question, [*brought, *own]), Found):
        found = (replay.measured(grid, cell, step.round, cv, seed) for cell in step.cells)
        own += (servers.seen(point, before + point.round) for point in found)
    return step, own


def _starts(points: Sequence[Point]) -> int:
    return len({(point.round, point.cell.arm) for point in points})


def _own(seed: int) -> tuple[replay.Grid, replay.Grid]:
    """The same head and model: where more requests are under way, each further token costs 4 to 25 times as much."""
    chance, server = random.Random(f"{seed} of loads"), rooflines.Server.drawn(LOW, 4, seed)
    dearer = math.exp(chance.uniform(math.log(4), math.log(25)))
    busy = replace(server, verify=min(0.12, server.verify * dearer), knee=min(1.0, 2 * server.knee), memo={})
    return _grid(server, f"{seed} low"), _grid(busy, f"{seed} high")


def _grid(server: rooflines.Server, name: str) -> replay.Grid:
    chance = random.Random(name)
    baseline = {f"w{i}": chance.uniform(100, 2000) for i in range(4)}
    trees = []
    for shape in rooflines.GRID_47:
        points = {}
        for i, (workload, speed) in enumerate(baseline.items()):
            length, noise = server.accepted(shape, i), math.exp(chance.gauss(0, server.interaction))
            points[workload] = {"throughput": speed * length / server.step(shape) * noise, "acceptLength": length}
        trees.append(_row(shape, points))
    return replay.grid({"baseline": baseline, "trees": trees})


def _other(seed: int) -> tuple[replay.Grid, replay.Grid]:
    """Another make (`rooflines.other_table`), whose steps get longer by 0.4 to 5 % of the baseline's with each token
    beyond four."""
    low, chance = rooflines.other_table(rooflines.GRID_47, seed=seed), random.Random(f"{seed} of loads")
    dearer = math.exp(chance.uniform(math.log(0.004), math.log(0.05)))
    trees = []
    for tree in low["trees"]:
        shape, points = (tree["numSteps"], tree["topK"], tree["numDraftTokens"]), {}
        for workload, point in tree["points"].items():
            tokens = low["baseline"][workload] * point["acceptLength"]
            step = tokens / point["throughput"] + dearer * max(0, shape[2] - 4)
            noise = math.exp(chance.gauss(0, 0.01))
            points[workload] = {"throughput": tokens / step * noise, "acceptLength": point["acceptLength"]}
        trees.append(_row(shape, points))
    return replay.grid(low), replay.grid({"baseline": low["baseline"], "trees": trees})


def _row(shape: rooflines.Shape, points: dict[str, Any]) -> dict[str, Any]:
    return {"numSteps": shape[0], "topK": shape[1], "numDraftTokens": shape[2], "points": points}


MAKES = {"our own make": _own, "another make": _other}


def _counted(job: tuple[str, bool, int, float]) -> Searched:
    make, shared, seed, cv = job
    return searched(make, seed, cv, shared=shared)


def table() -> Iterator[str]:
    yield "| | starts of the second | of both | points of both | regret of the second in %: mean / 95th percentile |"
    yield "|---|---|---|---|---|"
    with ProcessPoolExecutor() as pool:
        for make, shared in product(MAKES, (False, True)):
            found = list(pool.map(_counted, [(make, shared, seed, cv) for seed in SERVERS for cv in NOISES]))
            regrets = [one.regret for one in found]
            counts = [
                f"{mean(values):.1f}"
                for values in (
                    [one.starts for one in found],
                    [one.starts_of_both for one in found],
                    [one.points_of_both for one in found],
                )
            ]
            how = "shared" if shared else "each for itself"
            regret = f"{100 * mean(regrets):.2f} / {100 * percentile(regrets, 0.95):.2f}"
            yield f"| {make}, {how} | {' | '.join(counts)} | {regret} |"


def _counted_unsteady(job: tuple[str, bool, int, float]) -> Searched:
    make, shared, seed, offset = job
    return searched(make, seed, 0.02, shared=shared, start=START, drift=DRIFT, offset=offset)


def unsteady_table() -> Iterator[str]:
    yield "| | starts of the second | regret of the second in %: mean (standard error) / 95th percentile |"
    yield "|---|---|---|"
    with ProcessPoolExecutor() as pool:
        for make, (shared, offset) in product(MAKES, ((False, 0.0), *((True, offset) for offset in OFFSETS))):
            found = list(pool.map(_counted_unsteady, [(make, shared, seed, offset) for seed in SERVERS]))
            regrets = [one.regret for one in found]
            error = pstdev(regrets) / math.sqrt(len(regrets))
            how = f"shared, {_told(offset)}" if shared else "each for itself"
            regret = f"{100 * mean(regrets):.2f} ({100 * error:.2f}) / {100 * percentile(regrets, 0.95):.2f}"
            yield f"| {make}, {how} | {mean([one.starts for one in found]):.1f} | {regret} |"


def _told(offset: float) -> str:
    return f"own points {abs(offset):.0%} {'faster' if offset > 0 else 'slower'}" if offset else "own points alike"


def main() -> int:
    rows = list(table())
    rows += ["", UNSTEADY, "", *unsteady_table()]
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", "", *rows, "", f"{END}{rest.partition(END)[2]}"]))
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
