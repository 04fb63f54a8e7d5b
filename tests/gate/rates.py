"""How often the gate errs: seeded campaigns of each row, judged by the code that the operator runs.

`python -m tests.gate.rates`, which is `make bench`, measures all rows, writes them between the markers of
docs/reports/error-rates.md, and fails if a promise is broken.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from math import exp, fsum, log
from pathlib import Path
from statistics import mean

from tests.gate import classes, lengths, sized, slower
from tests.gate.rows import CAMPAIGNS, Row, even, rows
from tests.support.campaigns import Truth
from tests.support.tables import percent, short, whole

from paceline import core, gate
from paceline.core import ArmOutcome, Outcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "reports" / "error-rates.md"
BEGIN, END = "<!-- `make bench` writes what follows -->", "<!-- to here -->"
HEAD = "| truth | promised | noise | wrong | promoted | rejected | rounds | hold |"
COLUMNS = HEAD.strip("| ").split(" | ")
RATES = ("wrong", "promoted", "rejected", "hold")
REPEATED = 3
"""Columns in which a cell may repeat the one above."""
NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Fractions of campaigns, but for `rounds`; what is neither promoted nor rejected is inconclusive."""

    wrong: float
    """A candidate that must not be promoted was found promotable, whether it won or not."""
    promoted: float
    rejected: float
    rounds: float
    """Mean number at the deciding look."""
    hold: float
    """Of the intervals shown, of means and workloads: those that hold the truth."""
    winners: Mapping[str, float]


def measured(row: Row) -> Rates:
    weights = row.weights or even(1.0)
    verdicts = [gate.decide(row.rule, list(row.truth), weights, row.campaign(seed)) for seed in range(CAMPAIGNS)]
    outcomes = Counter(v.outcome for v in verdicts)
    winners = Counter(v.winner for v in verdicts if v.winner)
    wrong = sum(any(v.arms[arm].outcome is ArmOutcome.PROMOTABLE for arm in row.unworthy) for v in verdicts)
    return Rates(
        wrong=wrong / CAMPAIGNS,
        promoted=outcomes[Outcome.PROMOTE] / CAMPAIGNS,
        rejected=outcomes[Outcome.REJECT] / CAMPAIGNS,
        rounds=mean(v.rounds for v in verdicts),
        hold=mean(holds for v in verdicts for holds in intervals(row.truth, weights, v)),
        winners={arm: winners[arm] / CAMPAIGNS for arm in row.truth if winners[arm]},
    )


def intervals(truth: Truth, weights: Mapping[str, float], verdict: core.Verdict) -> Iterator[bool]:
    """Of every interval shown, whether it holds the true ratio."""
    baseline, *_ = truth.values()
    for name, arm in verdict.arms.items():
        ratios = {w: truth[name][w] / baseline[w] for w in arm.workloads}
        yield from (found.lower <= ratios[w] <= found.upper for w, found in arm.workloads.items())
        if arm.mean:
            logs = fsum(weight * log(ratios[w]) for w, weight in weights.items())
            yield arm.mean.lower <= exp(logs / fsum(weights.values())) <= arm.mean.upper


def line(row: Row, rates: Rates) -> str:
    """As it stands in the document, before cells that repeat are left empty."""
    which = ", ".join(f"{arm} {percent(share)}" for arm, share in rates.winners.items()) if len(row.truth) > 2 else ""
    cells = {
        "truth": row.name,
        "promised": ", ".join(map(str, row.promises)) or NONE,
        "noise": row.noise,
        "rounds": f"{rates.rounds:.1f}",
        **{name: percent(getattr(rates, name)) for name in RATES},
    }
    cells["wrong"] = cells["wrong"] if row.unworthy else NONE
    cells["promoted"] += f" ({which})" if which else ""
    return f"| {' | '.join(cells[column] for column in COLUMNS)} |"


def read(text: str) -> dict[str, float]:
    """The rates of such a line."""
    cells = dict(zip(COLUMNS, (cell.strip() for cell in text.strip("| \n").split(" | ")), strict=True))
    return {name: float(cells[name].split()[0]) / 100 for name in RATES if cells[name] != NONE}


def written(document: str) -> list[str]:
    """The lines of rows between the markers, in order, with all cells."""
    between = document.split(BEGIN)[1].split(END)[0]
    lines = [found for found in between.splitlines() if found.startswith("| ") and found != HEAD]
    return list(whole(lines, REPEATED))


def broken(row: Row, rates: Mapping[str, float]) -> list[str]:
    return [f"{row.name}, {row.noise}: {promise}" for promise in row.held if not promise.kept(rates[promise.of])]


def tables(lines: Sequence[tuple[Row, str]]) -> Iterator[str]:
    for group, members in groupby(lines, key=lambda pair: pair[0].group):
        texts = short((text for _, text in members), REPEATED)
        yield from ("", f"**{group}.**", "", HEAD, "|-" * len(COLUMNS) + "|", *texts)


def main() -> int:
    every, lines, faults = list(rows()), [], []
    with ProcessPoolExecutor() as pool:
        for row, rates in zip(every, pool.map(measured, every), strict=True):
            text = line(row, rates)
            print(text, flush=True)
            lines.append((row, text))
            faults += broken(row, read(text))
    document, more = sized.write(lengths.write(DOCUMENT.read_text()))
    document, wrong = slower.write(document)
    document, named = classes.write(document)
    faults += [*more, *wrong, *named]
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", *tables(lines), "", f"{END}{after}"]))
    faults += [fault for row in lengths.rows() for fault in lengths.broken(row)]
    print("\n".join(["", *faults]) if faults else "\nevery promise is kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
