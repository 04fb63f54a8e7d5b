"""What the search costs and misses, beside its rivals: `python -m tests.unit.search.bench`, part of `make bench`.

Counts on SpecBundle's tables and on made-up servers whose seeds no test and no choice of a constant has seen; writes
the table of docs/searching.md and the plot beside it, and fails if a bound is broken.
"""

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from tests.support import replay, rooflines, strangers
from tests.unit.search.rivals import RIVALS, Bench
from tests.unit.search.tables import SPECBUNDLE, made, mean, percentile, specbundle

from paceline.search import Limits

DOCUMENT = Path(__file__).parents[3] / "docs" / "searching.md"
PLOT = DOCUMENT.with_name("search.svg")
BEGIN, END = "<!-- `make bench` writes what follows -->", "<!-- to here -->"
SEARCH = "**the search**"
IN_THE_PLOT_ALONE = ("largest acceptance length", "random", "a model, then halving")
SEEDS, AT_ONCE = 200, 20
"""Noises of a table of SpecBundle, and how many of them are a job."""
UNSEEN = 50_000
"""The first seed of a made-up server here."""
NOISES = (0.01, 0.02, 0.03)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    title: str
    makes: tuple[str, ...]
    """Names of `tables.made`."""
    trees: int = 47
    servers: int = 12
    """Of each make."""
    told: float | None = 0.0
    doubt: float = 0.0
    """By how much the guess at each tree is wrong, as a standard deviation."""
    bounds: tuple[float, float, float, float] = (math.inf, math.inf, math.inf, math.inf)
    """At most: cost, server starts, mean and 95th percentile of the regret."""


OWN, STRANGE, HELD_OUT = tuple(rooflines.REGIMES), ("others", *strangers.CHOSEN), tuple(strangers.HELD_OUT)
KEPT = (0.06, 0.27, 0.005, 0.025)
WRONG = (0.06, 0.27, math.inf, 0.05)
GROUPS: Mapping[str, Group] = {
    "specbundle": Group(title="SpecBundle, 5 trees, CV 2 %", makes=(), bounds=(0.30, math.inf, 0.003, 0.025)),
    "own": Group(title="Servers of our own make, 47 trees", makes=OWN, bounds=KEPT),
    "strange": Group(title="Servers of other makes, 47 trees", makes=STRANGE, bounds=KEPT),
    "held out": Group(title="Makes that no constant was chosen on, 47 trees", makes=HELD_OUT, servers=24, bounds=KEPT),
    "136": Group(title="All makes, 136 trees", makes=(*OWN, *STRANGE, *HELD_OUT), trees=136, servers=4, bounds=KEPT),
    "wrong": Group(
        title="All makes, 47 trees, a ranking that is 15 % wrong",
        makes=(*OWN, *STRANGE, *HELD_OUT),
        servers=6,
        doubt=0.15,
        bounds=WRONG,
    ),
    "misled": Group(
        title="Other makes, 47 trees, acceptance lengths that are 15 % wrong",
        makes=(*STRANGE[1:], *HELD_OUT),
        servers=6,
        told=0.15,
    ),
    "untold": Group(
        title="Other makes, 47 trees, acceptance lengths that are not told", makes=(*STRANGE[1:], *HELD_OUT), told=None
    ),
}


@dataclass(frozen=True, slots=True)
class Job:
    group: str
    table: str
    seed: int

    def grid(self) -> replay.Grid:
        if self.group == "specbundle":
            return specbundle(next(file for file in SPECBUNDLE if file.stem == self.table))
        group = GROUPS[self.group]
        return made(self.table, group.trees, self.seed, group.told)


@dataclass(frozen=True, slots=True)
class Score:
    group: str
    strategy: str
    cost: float
    """Of the grid measured three times."""
    starts: float
    """Of the grid's, once."""
    regret: float


def jobs() -> Iterator[Job]:
    yield from (Job("specbundle", file.stem, seed) for file in SPECBUNDLE for seed in range(0, SEEDS, AT_ONCE))
    for name, group in GROUPS.items():
        yield from (Job(name, make, UNSEEN + i) for make in group.makes for i in range(group.servers))


def scores(job: Job) -> list[Score]:
    grid, found = job.grid(), list[Score]()
    truth, cells, doubt = grid.speed_ups, len(grid.trees) * len(grid.workloads), GROUPS[job.group].doubt
    noises = [(cv, job.seed) for cv in NOISES]
    if job.group == "specbundle":
        noises = [(0.02, job.seed + i) for i in range(AT_ONCE)]
    for cv, seed in noises:
        chance = random.Random(f"{seed} {cv}")
        doubts = {name: chance.gauss(0, math.log1p(doubt)) for name in grid.searched}
        one = replay.replay(grid, cv, seed, doubts=doubts)
        share = len(one.points) / (3 * cells)
        found.append(Score(job.group, SEARCH, share, one.starts / len(grid.trees), one.regret))
        for name, strategy in RIVALS.items():
            bench = Bench(grid, cv, seed, Limits(points=len(one.points), starts=one.starts))
            regret = replay.regret(truth, strategy(bench))
            found.append(Score(job.group, name, bench.spent / (3 * cells), bench.starts / len(grid.trees), regret))
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
    def regret(self) -> str:
        return f"{100 * self.mean:.2f} / {100 * self.p95:.2f}"


def rows(every: Sequence[Score]) -> list[Row]:
    found = []
    for group in GROUPS:
        for strategy in (SEARCH, *RIVALS):
            these = [score for score in every if (score.group, score.strategy) == (group, strategy)]
            regrets = [score.regret for score in these]
            cost, starts = mean(score.cost for score in these), mean(score.starts for score in these)
            found.append(Row(group, strategy, cost, starts, mean(regrets), percentile(regrets, 0.95), max(regrets)))
    return found


def broken(every: Sequence[Row]) -> list[str]:
    names = ("cost", "server starts", "mean regret", "95th percentile of regret")
    return [
        f"{GROUPS[row.group].title}: {name} {value:.4f} is above {bound}"
        for row in every
        if row.strategy == SEARCH
        for name, value, bound in zip(
            names, (row.cost, row.starts, row.mean, row.p95), GROUPS[row.group].bounds, strict=True
        )
        if value > bound
    ]


def tables(every: Sequence[Row]) -> Iterator[str]:
    """A row for each group: the search, then the regrets of some rivals; the plot has all, and what they cost."""
    of = {(row.group, row.strategy): row for row in every}
    shown = [rival for rival in RIVALS if rival not in IN_THE_PLOT_ALONE]
    yield from ("", f"| | cost | server starts | {SEARCH}, and largest | {' | '.join(shown)} |")
    yield f"|{'---|' * (4 + len(shown))}"
    for name, group in GROUPS.items():
        ours, rivals = of[name, SEARCH], (of[name, rival].regret for rival in shown)
        cells = (f"{ours.cost:.3f}", f"{ours.starts:.2f}", f"{ours.regret} / {100 * ours.worst:.2f}", *rivals)
        yield f"| {group.title} | {' | '.join(cells)} |"
    yield from ("", f"![Cost against regret]({PLOT.name})")


def plot(every: Sequence[Row], file: Path) -> None:
    """Cost against regret, each on a logarithmic axis, a panel for each kind of table."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    FigureCanvasSVG(figure)
    panels = figure.subplots(2, len(GROUPS) // 2, sharex=True, sharey=True)
    for axes, (name, group) in zip(panels.flat, GROUPS.items(), strict=True):
        axes.set_title(group.title.replace("trees, ", "trees,\n"), fontsize=7)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.004, 20)  # Room for what the last is called.
        axes.set_xlabel("cost, of the grid three times", fontsize=8)
        axes.tick_params(labelsize=7)
        for row in every:
            if row.group == name:
                place = (max(row.cost, 0.005), max(100 * row.mean, 0.01))
                axes.plot(*([x] for x in place), "o", color="#c2410c" if row.strategy == SEARCH else "#64748b")
                axes.annotate(row.strategy.strip("*"), place, (4, 3), textcoords="offset points", fontsize=6)
    for axes in panels[:, 0]:
        axes.set_ylabel("mean regret in %", fontsize=8)
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
