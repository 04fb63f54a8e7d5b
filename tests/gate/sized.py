"""Rounds that send as many requests as their first baseline shows to be enough: how often the gate errs, and what a
verdict costs. `tests.gate.rates` writes the table in docs/reports/error-rates.md; `python -m tests.gate.sized` prints
that of earlier looks, which is in decision 0068.

A pool with one request at a time, or with 32. A request takes as long as its baseline's own luck says (`spread`), and
at a candidate less by its prompt's gain, which deviates by `gains` between prompts; a throughput is requests over the
sum of their times. Sized, a round after the first sends what the operator would send (`plan.run.next_requests`), by the
spread that the first round's baseline had in that very campaign. All noise is independent of the truth, as everywhere
here. On an H200 the baseline's rounds at 32 differed as much as independent requests do (0068): `SEEN_AT_32`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np
from tests.gate.rows import CAMPAIGNS, NEVER, SMALL, Promise
from tests.support.campaigns import LATENCY, WORKLOADS, Truth, against
from tests.support.tables import percent, short, whole

from paceline import core, gate
from paceline.api.round import PointRecord
from paceline.core import ArmOutcome, Dataset, Outcome, Workload
from paceline.plan.run.next_requests import in_the_time_of_a_start, share_of, with_enough_requests

BEGIN, END = "<!-- `make bench` writes what follows: requests -->", "<!-- to here: requests -->"
HEAD = (
    "| truth | promised | at | looks | sent | noise | wrong | promoted | rejected | rounds | hold | later "
    "| hours, 300 s | hours, 47 s |"
)
COLUMNS = HEAD.strip("| ").split(" | ")
RATES = ("wrong", "promoted", "rejected", "hold")
REPEATED = 5
"""Columns in which a cell may repeat the one above."""
NONE = "–"
REQUESTS, FEWEST = 64, 16
STARTS, ACCELERATORS = (300.0, 47.0), 4
"""Seconds of a start: the flagship's, as assumed; and one H200's, with its model in memory."""
TOKENS = 512
SPEED = {1: 171.0, 32: 1900.0}
"""Of the published baseline, in tokens per second, at so many requests."""
SEEN_AT_32 = 0.28
"""Standard deviation of ln(speed) between the requests of an H200's baseline at 32 (docs/reports/gpu.md)."""
POINT = 0.005
CLEAR = Promise(of="promoted", least=0.995)
CHUNK = 250
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
    at: int = 1
    """Simultaneous requests."""
    size: int = 512
    """Prompts of the set: a built-in one's."""
    took: float | None = None
    """Seconds of a start, where the number of requests depends on it; None: either of `STARTS`."""
    unworthy: frozenset[str] = frozenset()
    promises: tuple[Promise, ...] = ()
    figure: bool = False

    @property
    def requests(self) -> int:
        """A first round's, of each workload."""
        return max(REQUESTS, core.WAVES * self.at)

    @property
    def most(self) -> int:
        """Requests of a round, by the set and by the time of a start."""
        point = PointRecord(asked=1, output_tokens=TOKENS, output_throughput=SPEED[self.at])
        share = share_of(self.size, core.Gate(decide_after_rounds=self.looks))
        return min(share, in_the_time_of_a_start(self.took, len(_workloads(self)), point))

    @property
    def sent(self) -> str:
        if not self.sized:
            return f"{self.requests}"
        return "by noise" if self.took is None else f"by noise, {self.took:g} s"

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
    yield from at_32(edge)


def at_32(edge: Row) -> Iterator[Row]:
    """One workload, and four, at 32 requests, with a set of 4,096 prompts. From a built-in set of 512 as many are sent
    by noise as without."""
    noises = [{"spread": SEEN_AT_32, "start": start} for start in (0.01, 0.0, 0.025)] + [{"spread": 0.05}]
    for workloads in (("code",), WORKLOADS):
        one = against(dict.fromkeys(workloads, (1.15**4 / 0.97) ** (1 / 3)) | {workloads[-1]: 0.97})
        for noise in noises:
            of = replace(edge, at=32, size=4096, **noise)
            clear = replace(of, unworthy=frozenset(), promises=())
            yield from _both(replace(of, name=f"+5 %{_on(workloads)}", truth=_all(workloads, 1.05)))
            if workloads == WORKLOADS:
                yield from _both(replace(of, name="mean +15 %, one workload −3 %", truth=one))
            for name, ratio in (("+8 %", 1.08), ("+10 %", 1.10)):
                yield from _both(replace(clear, name=f"{name}{_on(workloads)}", truth=_all(workloads, ratio)))
        quick = replace(edge, at=32, size=4096, spread=SEEN_AT_32, took=STARTS[1])
        yield replace(quick, name=f"+5 %{_on(workloads)}", truth=_all(workloads, 1.05))
        clear = replace(quick, unworthy=frozenset(), promises=())
        yield replace(clear, name=f"+8 %{_on(workloads)}", truth=_all(workloads, 1.08))
        equal = replace(edge, at=32, size=4096, spread=SEEN_AT_32, promises=(NEVER,))
        yield from _both(replace(equal, name=f"equal arms{_on(workloads)}", truth=_all(workloads, 1.0)))


def _both(row: Row) -> Iterator[Row]:
    yield replace(row, sized=False)
    yield replace(row, took=STARTS[0])


def _on(workloads: tuple[str, ...]) -> str:
    return "" if workloads == WORKLOADS else ", one workload"


def _all(workloads: tuple[str, ...], ratio: float) -> Truth:
    return against(dict.fromkeys(workloads, ratio))


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
    hours: tuple[float, ...]
    """One for each of `STARTS`."""


def measured(row: Row, campaigns: int = CAMPAIGNS) -> Found:
    rule = core.Gate(decide_after_rounds=row.looks)
    dice = np.random.default_rng([round(1e4 * x) for x in (row.gains, row.spread, row.start)] + [row.sized])
    weights = dict.fromkeys(_workloads(row), 1.0)
    verdicts, sent, loads, holds = [], [], [], []
    for _ in range(0, campaigns, CHUNK):
        speeds, requests = _drawn(row, dice, min(CHUNK, campaigns))
        for n in range(len(speeds)):
            verdict = gate.decide(rule, list(row.truth), weights, _measurements(row, speeds[n]))
            verdicts.append(verdict)
            sent.append(float(requests[n, 1].mean()))
            loads.append(requests[n, : verdict.rounds].sum() * TOKENS / SPEED[row.at])
            holds += _holds(row, verdict)
    rounds = fmean(v.rounds for v in verdicts)
    accelerators = len(row.truth) * ACCELERATORS
    return Found(
        wrong=fmean(any(v.arms[arm].outcome is ArmOutcome.PROMOTABLE for arm in row.unworthy) for v in verdicts),
        promoted=fmean(v.outcome is Outcome.PROMOTE for v in verdicts),
        rejected=fmean(v.outcome is Outcome.REJECT for v in verdicts),
        hold=fmean(holds),
        rounds=rounds,
        requests=fmean(sent),
        hours=tuple(accelerators * (rounds * start + fmean(loads)) / 3600 for start in STARTS),
    )


def _drawn(row: Row, dice: np.random.Generator, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Output tokens per second: campaign, round, arm, workload; and requests: campaign, round, workload."""
    rounds, arms, workloads = row.looks[-1], len(row.truth), len(_workloads(row))
    most = max(row.requests, row.most) if row.sized else row.requests
    shape = (many, rounds, arms, workloads, most)
    times = dice.normal(0, row.spread, shape) - row.spread**2 / 2
    times[:, :, 1:] -= dice.normal(0, row.gains, (many, rounds, arms - 1, workloads, most)) + row.gains**2 / 2
    requests = np.full((many, rounds, workloads), row.requests)
    if row.sized:
        spreads = (-times[:, 0, 0, :, : row.requests]).std(axis=-1, ddof=1)
        requests[:, 1:] = np.vectorize(partial(_enough, row))(spreads)[:, None]
    under = np.arange(most) < requests[:, :, None, :, None]
    taken = (np.exp(times) * under).sum(axis=-1) / under.sum(axis=-1)
    starts = dice.normal(0, row.start, (many, rounds, arms, 1))
    points = dice.normal(0, POINT, taken.shape)
    true = np.array([[points[w] for w in _workloads(row)] for points in row.truth.values()])
    return true / taken * np.exp(starts + points), requests


def _enough(row: Row, spread: float) -> int:
    fewest = max(FEWEST, core.WAVES * row.at)
    own = Dataset(
        name="code", source="pvc://sets/code.json", requests=row.requests, max_tokens=TOKENS, min_requests=fewest
    )
    workload, weights = Workload(dataset=own, concurrency=row.at), [1.0] * len(_workloads(row))
    return with_enough_requests(workload, spread, weights, row.most).dataset.requests


def _workloads(row: Row) -> tuple[str, ...]:
    return tuple(row.truth["baseline"])


def _measurements(row: Row, speeds: np.ndarray) -> list[core.Measurement]:
    return [
        core.Measurement(round=n, arm=arm, workload=workload, output_throughput=float(speeds[n, a, w]))
        for n in range(len(speeds))
        for a, arm in enumerate(row.truth)
        for w, workload in enumerate(_workloads(row))
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
        "at": f"{row.at}",
        "sent": row.sent,
        "noise": row.noise,
        "rounds": f"{found.rounds:.1f}",
        "later": f"{found.requests:.0f}",
        **{
            f"hours, {start:.0f} s": f"{hours:.1f}" if row.took in (None, start) else NONE
            for start, hours in zip(STARTS, found.hours, strict=True)
        },
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
