"""How often what is slower than the incumbent replaces it, and how often what is not slower does. `tests.gate.rates`
writes the table in docs/reports/error-rates.md.

A changed spec: a new baseline, in the last rows with candidates, beside what serves. Everything is as in `rows.py`; a
server that is slower has a later first token by as much, so that the limit on it is judged, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean

from tests.gate.rows import CAMPAIGNS, SMALL, Row
from tests.support.campaigns import Truth
from tests.support.tables import percent, short, whole

from paceline import core, gate
from paceline.core import INCUMBENT, ArmOutcome, Outcome

BEGIN, END = "<!-- `make bench` writes what follows: slower -->", "<!-- to here: slower -->"
HEAD = "| the change beside the incumbent | promised | noise | workloads | accepted | rejected | rounds |"
COLUMNS = HEAD.strip("| ").split(" | ")
REPEATED = 3
"""Columns in which a cell may repeat the one above."""
NONE = "–"
WORKLOADS = (1, 4, 8, 16)
USUAL, POINTS, LOUD, STARTS = (0.005, 0.01), (0.01, 0.0), (0.025, 0.0), (0.005, 0.025)
"""Noise of a point, and of a start."""
WRONG = replace(SMALL, of="accepted")


def change(name: str, workloads: int, ratio: float, noise: tuple[float, float], *, one: float | None = None) -> Row:
    """The new baseline, `ratio` times as fast as the incumbent on every workload; on the last one `one` times."""
    loads = [f"load{i}" for i in range(workloads)]
    mine = dict.fromkeys(loads, 100 * ratio) | ({} if one is None else {loads[-1]: 100 * one})
    return of_arms(name, {"baseline": mine, INCUMBENT: dict.fromkeys(loads, 100.0)}, noise, "baseline")


def of_arms(name: str, truth: Truth, noise: tuple[float, float], *unworthy: str) -> Row:
    cv, start = noise
    return Row(
        group="",
        name=name,
        truth=truth,
        cv=cv,
        start=start,
        rule=core.Gate(decide_after_rounds=core.default_looks(len(truth))),
        weights=dict.fromkeys(truth["baseline"], 1.0),
        unworthy=frozenset(unworthy),
        promises=(WRONG,),
    )


def rows() -> Iterator[Row]:
    for noise in (USUAL, POINTS):
        yield from (replace(change("−3 % on all", n, 0.97, noise), figure=n == 4) for n in WORKLOADS)
    yield replace(change("−3 % on all", 4, 0.97, USUAL), tail=True)
    for noise in (USUAL, POINTS):
        yield from (change("−3 % on one, the others equal", n, 1.0, noise, one=0.97) for n in WORKLOADS[1:])
    edge = change("−3 %, each later server of a round 1 % slower", 4, 0.97, USUAL)
    yield replace(edge, drift=0.01)
    yield replace(edge, name="−3 %, the first server of a round 3 % slower", first=0.03)
    flat = dict.fromkeys(("a", "b", "c", "d"), 100.0)
    less, low = dict.fromkeys(flat, 97.0), dict.fromkeys(flat, 80.0)
    three = {"baseline": low, "small": less, "medium": less, "large": less, INCUMBENT: flat}
    yield of_arms(
        "a candidate −3 %, the baseline −20 %",
        {"baseline": low, "candidate": less, INCUMBENT: flat},
        USUAL,
        "candidate",
    )
    yield of_arms("three candidates −3 %, the baseline −20 %", three, USUAL, "small", "medium", "large")
    for name, ratio in (("equal", 1.0), ("+8 %", 1.08)):
        for noise in (USUAL, POINTS, LOUD, STARTS):
            every = (change(name, n, ratio, noise) for n in WORKLOADS)
            yield from (replace(one, unworthy=frozenset(), promises=()) for one in every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Fractions of campaigns, but for `rounds`: the mean number at the deciding look."""

    accepted: float
    rejected: float
    rounds: float


def measured(of: Row, campaigns: int = CAMPAIGNS) -> Rates:
    """`accepted`: of an arm that is too slow, that it may replace the incumbent; else that any does."""
    verdicts = [decided(of, seed) for seed in range(campaigns)]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    wrong = sum(any(v.arms[arm].outcome is ArmOutcome.PROMOTABLE for arm in of.unworthy) for v in verdicts)
    return Rates(
        accepted=(wrong if of.unworthy else outcomes[Outcome.PROMOTE]) / campaigns,
        rejected=outcomes[Outcome.REJECT] / campaigns,
        rounds=fmean(verdict.rounds for verdict in verdicts),
    )


def decided(of: Row, seed: int) -> core.Verdict:
    found = [replace(m, metrics={"meanTTFT": 5 / (m.output_throughput or 1.0)}) for m in of.campaign(seed)]
    return gate.decide(of.rule, list(of.truth), of.weights or {}, found)


def line(of: Row, rates: Rates) -> str:
    cells = {
        COLUMNS[0]: of.name,
        "promised": ", ".join(map(str, of.promises)) or NONE,
        "noise": of.noise,
        "workloads": str(len(of.weights or {})),
        "accepted": percent(rates.accepted),
        "rejected": percent(rates.rejected),
        "rounds": f"{rates.rounds:.1f}",
    }
    return f"| {' | '.join(cells[column] for column in COLUMNS)} |"


def read(text: str) -> Mapping[str, float]:
    cells = dict(zip(COLUMNS, (cell.strip() for cell in text.strip("| \n").split(" | ")), strict=True))
    return {"accepted": float(cells["accepted"]) / 100}


def broken(of: Row, text: str) -> list[str]:
    rates = read(text)
    return [f"{of.name}, {of.noise}: {one}" for one in of.promises if not one.kept(rates[one.of])]


def written(document: str) -> list[str]:
    """The lines of rows between the markers, in order, with all cells."""
    between = document.split(BEGIN)[1].split(END)[0]
    return list(whole((one for one in between.splitlines() if one.startswith("| ") and one != HEAD), REPEATED))


def write(document: str) -> tuple[str, list[str]]:
    """With the table anew, and what is promised and not kept."""
    every = list(rows())
    with ProcessPoolExecutor() as pool:
        lines = [line(of, rates) for of, rates in zip(every, pool.map(measured, every), strict=True)]
    before, _, rest = document.partition(BEGIN)
    table = "\n".join([HEAD, "|-" * len(COLUMNS) + "|", *short(iter(lines), REPEATED)])
    faults = [fault for of, text in zip(every, lines, strict=True) for fault in broken(of, text)]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", faults
