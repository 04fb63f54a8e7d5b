"""How often an arm is wrongly called the best of a dataset, and how often the best one is. `tests.gate.rates` writes
the table in docs/reports/error-rates.md. Noise is as in `rows.py`; all rounds are measured, the looks are 4, 6 and 8.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import fmean

from tests.gate.rows import CAMPAIGNS, Promise
from tests.support.campaigns import Truth, measure
from tests.support.tables import percent

from paceline import core, gate

BEGIN, END = "<!-- `make bench` writes what follows: classes -->", "<!-- to here: classes -->"
HEAD = "| truth | datasets | arms | noise | wrong | best named |"
POINT = 0.005
WRONG = Promise(of="wrong", most=0.05)
RULE = core.Gate(decide_after_rounds=(4, 6, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    datasets: int
    arms: int
    start: float
    gain: float = 0.0
    """By which one arm is faster than all others on a dataset: on the first the first arm, on the next the next."""
    figure: bool = False

    @property
    def best(self) -> Mapping[str, str]:
        """Dataset → its best arm."""
        names = [f"data{n}" for n in range(self.datasets)]
        return dict(zip(names, islice(cycle(self.names), self.datasets), strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        return ("baseline", "narrow", "wide")[: self.arms]

    @property
    def truth(self) -> Truth:
        return {
            arm: {name: 100 * (1 + self.gain * (best == arm)) for name, best in self.best.items()} for arm in self.names
        }


def rows() -> Iterator[Row]:
    """Noise of a start is shared by all datasets of an arm, so they err together; without it each errs by itself."""
    for gain, name in ((0.0, "equal arms"), (0.03, "one arm +3 %"), (0.08, "one arm +8 %")):
        for datasets, arms in ((2, 2), (4, 3), (8, 3)):
            for start in (0.01, 0.0):
                figure = datasets == 4 and not gain
                yield Row(name=name, datasets=datasets, arms=arms, start=start, gain=gain, figure=figure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """`wrong`: of campaigns, in which any dataset got an arm that is not the best; `named`: of datasets."""

    wrong: float
    named: float


def measured(row: Row, campaigns: int = CAMPAIGNS) -> Rates:
    loads = {name: {name: 1.0} for name in row.best}
    wrong, named = [], []
    for seed in range(campaigns):
        found = measure(row.truth, cv=POINT, start=row.start, seed=seed, rounds=RULE.decide_after_rounds[-1])
        best = {one.dataset: one.best for one in gate.best_by_class(RULE, row.names, loads, found)}
        true = row.best if row.gain else dict.fromkeys(row.best)
        wrong.append(any(best[name] not in (None, true[name]) for name in best))
        named.append(fmean(best[name] == arm for name, arm in row.best.items()))
    return Rates(wrong=fmean(wrong), named=fmean(named))


def line(row: Row, rates: Rates) -> str:
    noise = f"{100 * POINT:g} %, start {100 * row.start:g} %"
    named = percent(rates.named) if row.gain else "–"
    return f"| {row.name} | {row.datasets} | {row.arms} | {noise} | {percent(rates.wrong)} | {named} |"


def wrong_of(text: str) -> float:
    return float(text.split(" | ")[-2]) / 100


def written(document: str) -> list[str]:
    between = document.split(BEGIN)[1].split(END)[0]
    return [one for one in between.splitlines() if one.startswith("| ") and one != HEAD]


def write(document: str) -> tuple[str, list[str]]:
    """With the table anew, and what is promised and not kept."""
    lines = [line(row, measured(row)) for row in rows()]
    before, _, rest = document.partition(BEGIN)
    table = "\n".join([HEAD, "|-" * (HEAD.count("|") - 1) + "|", *lines])
    faults = [f"{text}: {WRONG}" for text in lines if not WRONG.kept(wrong_of(text))]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", faults
