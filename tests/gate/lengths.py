"""How often answers that part by rounding cost a round, or a candidate: a table of docs/reports/error-rates.md.

Two arms of four workloads. A prompt's natural length is log-normal about a median (deviation 0.6) and cut at a cap; of
the answers a share parts, and then ends elsewhere, by 20 %, sooner as often as later. Nothing is known of how many part
on a real engine: 30 % and 70 % are to hold either way.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.support.campaigns import WORKLOADS

from paceline import core, gate
from paceline.evidence.judge import largest_difference

RUNS = 500
ROUNDS = 8
BEGIN, END = "<!-- `make bench` writes the lengths -->", "<!-- to here, the lengths -->"
HEAD = "| requests | median / cap | part | rounds lost to 5 % | rounds lost | candidates lost |"
MOST_ROUNDS_LOST = 0.02
MOST_CANDIDATES_LOST = 0.01
BEFORE = 0.05
"""Between the arms of one round, and the round was no evidence."""
AS_FAST = 1.5
"""The candidate: it is to be promoted, whatever it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    requests: int
    median: int
    cap: int
    parts: float
    shorter: float = 1.0
    """The candidate's answers that part are so much shorter besides."""

    @property
    def name(self) -> str:
        less = f", {1 - self.shorter:.0%} shorter on the candidate" if self.shorter < 1 else ""
        return f"| {self.requests} | {self.median} / {self.cap} | {self.parts:.0%}{less} |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Fractions of all rounds, and of all runs."""

    before: float
    rounds: float
    candidates: float


def rows() -> Iterator[Row]:
    for requests, median, cap in ((6, 400, 512), (24, 400, 2048), (64, 400, 512), (64, 200, 512), (64, 400, 2048)):
        yield from (Row(requests=requests, median=median, cap=cap, parts=parts) for parts in (0.3, 0.7))
    yield from (Row(requests=96, median=400, cap=2048, parts=parts) for parts in (0.3, 0.7))
    yield Row(requests=64, median=400, cap=2048, parts=0.7, shorter=0.8)


def honest(row: Row) -> bool:
    return row.shorter == 1


@cache
def lost(row: Row) -> Lost:
    baseline, candidate = tokens(row)
    apart = np.exp(np.abs(np.log(candidate / baseline))) - 1
    rejected = sum(
        _reason(baseline[run], candidate[run]) == gate.Finding.LENGTHS_DIFFER.value for run in range(len(baseline))
    )
    return Lost(
        before=float((apart > BEFORE).any(axis=2).mean()),
        rounds=float((apart > largest_difference(row.requests)).any(axis=2).mean()),
        candidates=rejected / RUNS,
    )


def tokens(row: Row) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of baseline and candidate: run, round, workload → output tokens. Other prompts each round, the same on both."""
    dice = np.random.default_rng(row.requests * row.median + row.cap)
    shape = (RUNS, ROUNDS, len(WORKLOADS), row.requests)
    prompts = dice.lognormal(math.log(row.median), 0.6, shape)

    def written(shorter: float) -> NDArray[np.float64]:
        elsewhere = np.where(dice.random(shape) < row.parts, shorter * dice.lognormal(0.0, 0.2, shape), 1.0)
        whole: NDArray[np.float64] = np.clip(prompts * elsewhere, 8, row.cap).sum(axis=3)
        return whole

    return written(1.0), written(row.shorter)


def _reason(baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> str:
    measurements = [
        core.Measurement(
            round=n,
            arm=arm,
            workload=workload,
            output_throughput=100 * speed * (1 + 0.001 * (n % 2)),
            metrics={"outputTokens": float(found[n, w])},
        )
        for n in range(ROUNDS)
        for arm, speed, found in (("baseline", 1.0, baseline), ("candidate", AS_FAST, candidate))
        for w, workload in enumerate(WORKLOADS)
    ]
    weights = dict.fromkeys(WORKLOADS, 1.0)
    return gate.decide(core.Gate(), ("baseline", "candidate"), weights, measurements).arms["candidate"].reason


def line(row: Row) -> str:
    found = lost(row)
    return f"{row.name} {found.before:.4f} | {found.rounds:.4f} | {found.candidates:.4f} |"


def broken(row: Row) -> list[str]:
    """Of honest rows: what is promised and not kept. A candidate that does write less is to be found out."""
    found = lost(row)
    if not honest(row):
        return [] if found.candidates > 0.9 else [f"{row.name}: only {found.candidates:.1%} are found out"]
    promises = {"rounds": (found.rounds, MOST_ROUNDS_LOST), "candidates": (found.candidates, MOST_CANDIDATES_LOST)}
    return [f"{row.name}: {rate:.1%} of {name} lost" for name, (rate, most) in promises.items() if rate > most]


def table() -> str:
    return "\n".join([HEAD, "|---" * HEAD.count(" | ") + "|---|", *map(line, rows())])


def written(document: str) -> str:
    return document.split(BEGIN)[1].split(END)[0].strip()


def write(document: str) -> str:
    """With the table anew."""
    before, _, rest = document.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
