"""What the search costs and misses, beside its rivals: `python -m tests.unit.search.bench`, part of `make bench`.

Counts on SpecBundle's tables and on made-up servers whose seeds no test and no choice of a constant has seen; writes
the table of docs/search.md and the plot beside it, and fails if a bound is broken.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from tests.support import rooflines
from tests.unit.search.rivals import RIVALS, Bench
from tests.unit.search.tables import SPECBUNDLE, mean, percentile, specbundle

from paceline.search import replay

DOCUMENT = Path(__file__).parents[3] / "docs" / "search.md"
PLOT = DOCUMENT.with_name("search.svg")
BEGIN, END = "<!-- `make bench` writes what follows -->", "<!-- to here -->"
SEARCH = "**the search**"
SEEDS, TABLES, LARGE = 200, 12, 3
"""Noises of a table of SpecBundle; made-up servers of each regime, with 47 and with 136 trees."""
UNSEEN = 50_000
"""The first seed of a made-up server here."""


@dataclass(frozen=True, slots=True)
class Job:
    group: str
    table: str
    seed: int

    def grid(self) -> replay.Grid:
        kind, _, name = self.table.partition(":")
        if kind == "specbundle":
            return specbundle(next(file for file in SPECBUNDLE if file.stem == name))
        shapes = {"47": rooflines.GRID_47, "136": rooflines.GRID_136}[kind]
        if name == "others":
            return replay.grid(rooflines.other_table(shapes, seed=self.seed))
        return replay.grid(rooflines.table(shapes, rooflines.REGIMES[name], seed=self.seed))


@dataclass(frozen=True, slots=True)
class Score:
    group: str
    strategy: str
    cost: float
    """Of the grid measured three times."""
    starts: float
    """Of the grid's, once."""
    regret: float


NAMES = {
    "specbundle": "SpecBundle, 5 trees, CV 2 %",
    "47": "Made up, 47 trees, CV 1, 2 and 3 %",
    "136": "Made up, 136 trees, CV 1, 2 and 3 %",
    "others": "Made up by other formulas, 47 trees, CV 1, 2 and 3 %",
}


def jobs() -> Iterator[Job]:
    yield from (
        Job("specbundle", f"specbundle:{file.stem}", seed) for file in SPECBUNDLE for seed in range(0, SEEDS, 20)
    )
    for name in rooflines.REGIMES:
        yield from (Job("47", f"47:{name}", UNSEEN + seed) for seed in range(TABLES))
        yield from (Job("136", f"136:{name}", UNSEEN + seed) for seed in range(LARGE))
    yield from (Job("others", "47:others", UNSEEN + seed) for seed in range(2 * TABLES))


def scores(job: Job) -> list[Score]:
    grid, found = job.grid(), list[Score]()
    truth, cells = grid.speed_ups, len(grid.trees) * len(grid.workloads)
    noises = [(0.02, job.seed + i) for i in range(20)] if job.group == "specbundle" else [
        (cv, job.seed) for cv in (0.01, 0.02, 0.03)
    ]  # fmt: skip
    for cv, seed in noises:
        one = replay.replay(grid, cv, seed)
        share = len(one.points) / (3 * cells)
        found.append(Score(job.group, SEARCH, share, one.starts / len(grid.trees), one.regret))
        for name, strategy in RIVALS.items():
            bench = Bench(grid, cv, seed)
            regret = replay.regret(truth, strategy(bench))
            points = sum(map(len, bench.points.values()))
            found.append(Score(job.group, name, points / (3 * cells), bench.starts / len(grid.trees), regret))
    return found


@dataclass(frozen=True, slots=True)
class Row:
    group: str
    strategy: str
    cost: float
    starts: float
    mean: float
    p95: float
    worst: float

    @property
    def line(self) -> str:
        regrets = " / ".join(f"{100 * value:.2f}" for value in (self.mean, self.p95, self.worst))
        return f"| {self.strategy} | {self.cost:.3f} | {self.starts:.2f} | {regrets} |"


def rows(every: Sequence[Score]) -> list[Row]:
    found = []
    for group in NAMES:
        for strategy in (SEARCH, *RIVALS):
            these = [score for score in every if (score.group, score.strategy) == (group, strategy)]
            regrets = [score.regret for score in these]
            cost, starts = mean(score.cost for score in these), mean(score.starts for score in these)
            found.append(Row(group, strategy, cost, starts, mean(regrets), percentile(regrets, 0.95), max(regrets)))
    return found


BOUNDS = {"specbundle": (0.30, None, 0.003, 0.025), "47": (0.06, 0.27, 0.005, 0.025)}
"""Group → at most: cost, server starts, mean and 95th percentile of the regret."""


def broken(every: Sequence[Row]) -> list[str]:
    faults = []
    for row in every:
        if row.strategy == SEARCH and row.group in BOUNDS:
            values = (row.cost, row.starts, row.mean, row.p95)
            names = ("cost", "server starts", "mean regret", "95th percentile of regret")
            faults += [
                f"{NAMES[row.group]}: {name} {value:.4f} is above {bound}"
                for name, value, bound in zip(names, values, BOUNDS[row.group], strict=True)
                if bound is not None and value > bound
            ]
    return faults


def tables(every: Sequence[Row]) -> Iterator[str]:
    head = "| | cost | server starts | regret in %: mean / 95th percentile / largest |"
    for group, name in NAMES.items():
        yield from ("", f"**{name}.**", "", head, "|---|---|---|---|")
        yield from (row.line for row in every if row.group == group)
    yield from ("", f"![Cost against regret]({PLOT.name})")


def plot(every: Sequence[Row], file: Path) -> None:
    """Cost against regret, each on a logarithmic axis, a panel for each kind of table."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasSVG(figure)
    for axes, (group, name) in zip(figure.subplots(1, len(NAMES), sharey=True), NAMES.items(), strict=True):
        axes.set_title(name.replace(", CV", ",\nCV"), fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("cost, of the grid three times", fontsize=8)
        axes.tick_params(labelsize=7)
        for row in every:
            if row.group == group:
                place = (max(row.cost, 0.005), max(100 * row.mean, 0.01))
                axes.plot(*([x] for x in place), "o", color="#c2410c" if row.strategy == SEARCH else "#64748b")
                axes.annotate(row.strategy.strip("*"), place, (4, 3), textcoords="offset points", fontsize=6)
    figure.get_axes()[0].set_ylabel("mean regret in %", fontsize=8)
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> int:
    every: list[Score] = []
    with ProcessPoolExecutor() as pool:
        for found in pool.map(scores, jobs()):
            every += found
    counted = rows(every)
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", *tables(counted), "", f"{END}{rest.partition(END)[2]}"]))
    plot(counted, PLOT)
    print("\n".join(tables(counted)))
    faults = broken(counted)
    print("\n".join(["", *faults]) if faults else "\nevery bound is kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
