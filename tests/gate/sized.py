"""Rounds that send as many requests as their first baseline shows to be enough: how often the gate errs, and what a
verdict costs. `tests.gate.rates` writes the table in docs/reports/error-rates.md; `python -m tests.gate.sized` prints
that of earlier looks, which is in decision 0068.

A latency pool, one request at a time. A request takes as long as its baseline's own luck says (`spread`), and at a
candidate less by its prompt's gain, which deviates by `gains` between prompts; a throughput is requests over the sum of
their times. Sized, a round after the first sends what the operator would send (`plan.run.enough`), by the spread that
the first round's baseline had in that very campaign. All noise is independent of the truth, as everywhere here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from tests.gate.rows import CAMPAIGNS, NEVER, SMALL, Promise
from tests.support.campaigns import LATENCY, WORKLOADS, Truth, against
from tests.support.tables import percent, short, whole

from paceline import core, gate
from paceline.core import ArmOutcome, Dataset, Outcome, Workload
from paceline.plan.run.next_requests import with_enough_requests

BEGIN, END = "<!-- `make bench` writes what follows: requests -->", "<!-- to here: requests -->"
HEAD = "| truth | promised | looks | sent | noise | wrong | promoted | rejected | rounds | hold | later | GPU-hours |"
COLUMNS = HEAD.strip("| ").split(" | ")
RATES = ("wrong", "promoted", "rejected", "hold")
REPEATED = 4
"""Columns in which a cell may repeat the one above."""
NONE = "–"
REQUESTS, FEWEST = 64, 16
STARTS, ACCELERATORS = 300.0, 4
TOKENS, SPEED = 512, 171.0
"""An answer's, and the published baseline's a second."""
POINT = 0.005
CLEAR = Promise(of="promoted", least=0.995)
CHUNK = 500
"""Campaigns drawn at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    group: str
    name: str
    truth: Truth
    gains: float = 0.15
    spread: float = 0.02
    start: float = 0.01
    looks: tuple[int, ...] = core.default_looks(2)
    sized: bool = True
    unworthy: frozenset[str] = frozenset()
    promises: tuple[Promise, ...] = ()
    figure: bool = False

    @property
    def noise(self) -> str:
        return f"{100 * self.gains:g}, {100 * self.spread:g}, {100 * self.start:g} %"

    @property
    def held(self) -> tuple[Promise, ...]:
        return (*self.promises, Promise(of="hold", least=round(1 - 0.1 / (len(self.truth) - 1), 4)))


def rows() -> Iterator[Row]:
    edge = Row(
        group="Requests by the noise of the first round's baseline: error rates hold, and clear cases cost less",
        name="+5 %",
        truth=against(dict.fromkeys(WORKLOADS, 1.05)),
        unworthy=frozenset({"candidate"}),
        promises=(SMALL,),
    )
    one = dict.fromkeys(WORKLOADS, (1.15**4 / 0.97) ** (1 / 3)) | {"terminal": 0.97}
    clear = replace(edge, unworthy=frozenset(), promises=())
    equal = replace(edge, name="equal arms", truth=against(dict.fromkeys(WORKLOADS, 1.0)))
    for both in (False, True):
        yield replace(edge, sized=both, figure=both)
    noises = ((0.05, 0.02, 0.01), (0.25, 0.02, 0.01), (0.15, 0.1, 0.01), (0.25, 0.02, 0.0), (0.25, 0.1, 0.025))
    yield from (replace(edge, gains=g, spread=s, start=start) for g, s, start in noises)
    for gains in (0.15, 0.25):
        yield replace(edge, name="mean +15 %, one workload −3 %", truth=against(one), gains=gains)
    family = {"baseline": dict.fromkeys(WORKLOADS, 1.0)} | {name: dict.fromkeys(WORKLOADS, 1.05) for name in "ab"}
    yield replace(edge, name="two candidates +5 %", truth=family, looks=core.default_looks(3), unworthy=frozenset("ab"))
    for both in (False, True):
        yield replace(equal, sized=both, promises=(NEVER,))
        for name, ratio in (("+8 %", 1.08), ("+10 %", 1.10), ("+15 %", 1.15)):
            yield replace(clear, name=name, truth=against(dict.fromkeys(WORKLOADS, ratio)), sized=both)
        for gains in (0.15, 0.25):
            flagship = replace(clear, name="the flagship's `latency`", truth=LATENCY, sized=both, gains=gains)
            yield replace(flagship, promises=(CLEAR,), figure=both)


def earlier_looks() -> Iterator[Row]:
    edge, clear = (
        replace(next(rows()), sized=True),
        replace(next(rows()), sized=True, unworthy=frozenset(), promises=()),
    )
    group = "Earlier looks"
    quiet = {"gains": 0.02, "spread": 0.005, "start": 0.002}
    truths = (("+8 %", 1.08), ("+10 %", 1.1), ("equal arms", 1.0))
    for noise in ({}, quiet):
        for looks in ((2, 4, 8), (2, 4, 6, 8), (4, 6, 8), (4, 8)):
            yield replace(edge, group=group, looks=looks, figure=False, **noise)
            for name, ratio in truths:
                yield replace(
                    clear, group=group, name=name, truth=against(dict.fromkeys(WORKLOADS, ratio)), looks=looks, **noise
                )
            yield replace(clear, group=group, name="the flagship's `latency`", truth=LATENCY, looks=looks, **noise)
    base = dict.fromkeys(WORKLOADS, 1.0)
    three = {"baseline": base, "a": dict.fromkeys(WORKLOADS, 1.05), "good": dict.fromkeys(WORKLOADS, 1.15)}
    for looks in ((2, 4, 8), (2, 6, 9), (3, 6, 9), (3, 9)):
        yield replace(edge, group=group, name="one +5 %, one +15 %", truth=three, looks=looks, unworthy=frozenset("a"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    wrong: float
    promoted: float
    rejected: float
    hold: float
    rounds: float
    requests: float
    hours: float


def measured(row: Row, campaigns: int = CAMPAIGNS) -> Found:
    rule = core.Gate(decide_after_rounds=row.looks)
    dice = np.random.default_rng([round(1e4 * x) for x in (row.gains, row.spread, row.start)] + [row.sized])
    weights = dict.fromkeys(WORKLOADS, 1.0)
    verdicts, sent, hours, holds = [], [], [], []
    for _ in range(0, campaigns, CHUNK):
        speeds, requests = _drawn(row, dice, min(CHUNK, campaigns))
        for n in range(len(speeds)):
            verdict = gate.decide(rule, list(row.truth), weights, _measurements(row, speeds[n]))
            verdicts.append(verdict)
            sent.append(float(requests[n, 1].mean()))
            loads = requests[n, : verdict.rounds].sum() * TOKENS / SPEED
            hours.append(len(row.truth) * ACCELERATORS * (verdict.rounds * STARTS + loads) / 3600)
            holds += _holds(row, verdict)
    return Found(
        wrong=fmean(any(v.arms[arm].outcome is ArmOutcome.PROMOTABLE for arm in row.unworthy) for v in verdicts),
        promoted=fmean(v.outcome is Outcome.PROMOTE for v in verdicts),
        rejected=fmean(v.outcome is Outcome.REJECT for v in verdicts),
        hold=fmean(holds),
        rounds=fmean(v.rounds for v in verdicts),
        requests=fmean(sent),
        hours=fmean(hours),
    )


def _drawn(row: Row, dice: np.random.Generator, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Output tokens per second: campaign, round, arm, workload; and requests: campaign, round, workload."""
    rounds, arms, workloads = row.looks[-1], len(row.truth), len(WORKLOADS)
    shape = (many, rounds, arms, workloads, REQUESTS)
    times = dice.normal(0, row.spread, shape) - row.spread**2 / 2
    times[:, :, 1:] -= dice.normal(0, row.gains, (many, rounds, arms - 1, workloads, REQUESTS)) + row.gains**2 / 2
    requests = np.full((many, rounds, workloads), REQUESTS)
    if row.sized:
        spreads = (-times[:, 0, 0]).std(axis=-1, ddof=1)
        requests[:, 1:] = np.vectorize(_enough)(spreads)[:, None]
    under = np.arange(REQUESTS) < requests[:, :, None, :, None]
    taken = (np.exp(times) * under).sum(axis=-1) / under.sum(axis=-1)
    starts = dice.normal(0, row.start, (many, rounds, arms, 1))
    points = dice.normal(0, POINT, taken.shape)
    true = np.array([[points[w] for w in WORKLOADS] for points in row.truth.values()])
    return true / taken * np.exp(starts + points), requests


def _enough(spread: float) -> int:
    dataset = Dataset(name="code", source="builtin://code", requests=REQUESTS, max_tokens=TOKENS, min_requests=FEWEST)
    return with_enough_requests(
        Workload(dataset=dataset, concurrency=1), spread, [1.0] * len(WORKLOADS)
    ).dataset.requests


def _measurements(row: Row, speeds: np.ndarray) -> list[core.Measurement]:
    return [
        core.Measurement(round=n, arm=arm, workload=workload, output_throughput=float(speeds[n, a, w]))
        for n in range(len(speeds))
        for a, arm in enumerate(row.truth)
        for w, workload in enumerate(WORKLOADS)
    ]


def _holds(row: Row, verdict: core.Verdict) -> Iterator[bool]:
    """Of every interval shown, whether it holds the true ratio."""
    baseline, *_ = row.truth.values()
    for name, arm in verdict.arms.items():
        ratios = {w: row.truth[name][w] / baseline[w] for w in arm.workloads}
        yield from (found.lower <= ratios[w] <= found.upper for w, found in arm.workloads.items())
        if arm.mean:
            yield arm.mean.lower <= math.exp(fmean(map(math.log, ratios.values()))) <= arm.mean.upper


def line(row: Row, found: Found) -> str:
    cells = {
        "truth": row.name,
        "promised": ", ".join(map(str, row.promises)) or NONE,
        "looks": ", ".join(map(str, row.looks)),
        "sent": "by noise" if row.sized else f"{REQUESTS}",
        "noise": row.noise,
        "rounds": f"{found.rounds:.1f}",
        "later": f"{found.requests:.0f}",
        "GPU-hours": f"{found.hours:.1f}",
        **{name: percent(getattr(found, name)) for name in RATES},
    }
    cells["wrong"] = cells["wrong"] if row.unworthy else NONE
    return f"| {' | '.join(cells[column] for column in COLUMNS)} |"


def read(text: str) -> dict[str, float]:
    """The rates of such a line."""
    cells = dict(zip(COLUMNS, (cell.strip() for cell in text.strip("| \n").split(" | ")), strict=True))
    return {name: float(cells[name]) / 100 for name in RATES if cells[name] != NONE}


def broken(row: Row, rates: Mapping[str, float]) -> list[str]:
    return [f"{row.name}, {row.noise}: {promise}" for promise in row.held if not promise.kept(rates[promise.of])]


def written(document: str) -> list[str]:
    """The lines of rows between the markers, in order, with all cells."""
    between = document.split(BEGIN)[1].split(END)[0]
    return list(whole((found for found in between.splitlines() if found.startswith("| ") and found != HEAD), REPEATED))


def write(document: str) -> tuple[str, list[str]]:
    """The document with the table counted anew, and the promises that are broken."""
    lines = [(row, line(row, measured(row))) for row in rows()]
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    table = [HEAD, "|-" * len(COLUMNS) + "|", *short((text for _, text in lines), REPEATED)]
    faults = [fault for row, text in lines for fault in broken(row, read(text))]
    return "\n".join([f"{before}{BEGIN}", "", *table, "", f"{END}{after}"]), faults


def main() -> None:
    print(HEAD, "|---" * len(COLUMNS) + "|", sep="\n")
    for row in earlier_looks():
        print(line(row, measured(row)), flush=True)


if __name__ == "__main__":
    main()
