"""How right a closed loop's numbers are: simulated clients on simulated servers, read by the code of a round.

`python -m tests.gate.closed_loops`, which `make bench` runs too, writes the table in docs/validity.md and fails where a
row is off by more than half a percent.

A server does one step after another. In a step each request under way gets one token, or one to four where it
speculates; the step takes as long as the published throughput at so many requests says, a straight line in
log-log between those at 1 and 32. A request that joins is prefilled before the step, and all others wait for it.
What is true is the ratio in a loop of a hundred times the concurrency, from when every place has answered once until
one is left empty: the beginning and the end of a loop are in what is measured, never in what is meant.
"""

import itertools
import math
import random
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tests.gate.campaigns import BASELINE_1, BASELINE_32, WIDE_1, WIDE_32

from paceline.core import WAVES
from paceline.pods.round.report import steady

DOCUMENT = Path(__file__).parents[2] / "docs" / "validity.md"
BEGIN, END = "<!-- `make bench` writes what follows -->", "<!-- to here -->"
HEAD = "| workload | answers | prefill | true | all of the time | steady, 3 × | **steady, 5 ×** | one round |"
REPEATS = 48
LONG = 100
"""Times the concurrency: a loop of which beginning and end do not matter."""
ALONE = 13
"""Times as many where one is under way at a time: of five answers acceptance is a matter of luck."""
CLOSE = 0.005
ACCEPTED = (1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4)
"""Tokens of a step that speculates, each of these equally often: 2.45 in the mean."""
CAP = 512


def drawn(median: float) -> Callable[[random.Random], int]:
    """Log-normal, a standard deviation of 0.7 in the logarithm, cut at the cap."""
    return lambda dice: int(min(CAP, max(16, dice.lognormvariate(math.log(median), 0.7))))


ANSWERS: Mapping[str, Callable[[random.Random], int]] = {
    "all cut at 512": lambda dice: CAP,
    "half of them cut": drawn(500),
    "median 220": drawn(220),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    dataset: str
    concurrency: int
    answers: str
    prefill: float
    """Share of the baseline's time that its prompts take."""

    @property
    def name(self) -> str:
        return f"| {self.dataset}@{self.concurrency} | {self.answers} | {self.prefill:.0%} |"


def rows() -> Iterator[Row]:
    for concurrency in (32, 8, 1):
        for dataset in ("terminal", "swe"):
            for answers in ANSWERS:
                for prefill in (0.0, 0.1):
                    yield Row(dataset=dataset, concurrency=concurrency, answers=answers, prefill=prefill)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """`one` and `many`: output tokens per second of 1 and of 32 requests; `prompt`: seconds of a prefill."""

    one: float
    many: float
    speculates: bool
    prompt: float

    def throughput(self, under_way: int) -> float:
        return self.one * math.pow(under_way, math.log(self.many / self.one) / math.log(32))

    def step(self, under_way: int) -> float:
        return under_way * (fmean(ACCEPTED) if self.speculates else 1.0) / self.throughput(under_way)

    def tokens(self, dice: random.Random) -> int:
        """Of a request in a step."""
        return dice.choice(ACCEPTED) if self.speculates else 1


def pair(row: Row) -> tuple[Server, Server]:
    """Baseline and candidate."""
    plain = Server(one=BASELINE_1[row.dataset], many=BASELINE_32[row.dataset], speculates=False, prompt=0.0)
    length = fmean(ANSWERS[row.answers](dice) for dice in [random.Random(0)] for _ in range(10_000))
    prompt = row.prefill / (1 - row.prefill) * length / plain.throughput(row.concurrency)
    return (
        Server(one=plain.one, many=plain.many, speculates=False, prompt=prompt),
        Server(one=WIDE_1[row.dataset], many=WIDE_32[row.dataset], speculates=True, prompt=prompt),
    )


@dataclass(frozen=True, slots=True)
class Loop:
    """What the benchmark client would report, when the pieces of each answer came, and output tokens per second of all
    of its time."""

    report: Mapping[str, Any]
    arrivals: Sequence[Sequence[float]]

    @property
    def throughput(self) -> float:
        return float(sum(self.report["output_lens"]) / self.report["duration"])


def loop(server: Server, lengths: Sequence[int], concurrency: int, dice: random.Random) -> Loop:
    left, starts = list(lengths), [0.0] * len(lengths)
    arrivals: list[list[float]] = [[] for _ in lengths]
    waiting, under_way, now = iter(range(len(lengths))), list[int](), 0.0
    steps = [server.step(most) for most in range(1, concurrency + 1)]
    while joined_or_under_way := [*under_way, *itertools.islice(waiting, concurrency - len(under_way))]:
        joined = joined_or_under_way[len(under_way) :]
        for one in joined:
            starts[one] = now
        now += server.prompt * len(joined)
        under_way, ended = joined_or_under_way, False
        while not ended:
            now += steps[len(under_way) - 1]
            for one in under_way:
                left[one] -= server.tokens(dice)
                arrivals[one].append(now)
                ended |= left[one] <= 0
        under_way = [one for one in under_way if left[one] > 0]
    report = {
        "ttfts": [came[0] - start for came, start in zip(arrivals, starts, strict=True)],
        "itls": [[after - before for before, after in itertools.pairwise(came)] for came in arrivals],
        "output_lens": list(lengths),
        "duration": now,
    }
    return Loop(report, arrivals)


def long_run(found: Loop, concurrency: int) -> float:
    """Output tokens per second from when every place has answered once until one is left empty."""
    ends = [came[-1] for came in found.arrivals]
    begin, end = max(ends[:concurrency]), sorted(ends)[-concurrency]
    inside = sum(
        length * (bisect_right(came, end) - bisect_right(came, begin)) / len(came)
        for came, length in zip(found.arrivals, found.report["output_lens"], strict=True)
    )
    return float(inside / (end - begin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`whole`, `three` and `five`: by how much a measured ratio is off, of all of the time at five times the
    concurrency, and in the steady window at three and five times; `scatter`: of the last between rounds."""

    true: float
    whole: float
    three: float
    five: float
    scatter: float


def measured(row: Row) -> Found:
    servers, dice, draw = pair(row), random.Random(row.name), ANSWERS[row.answers]

    def both(waves: int) -> list[Loop]:
        lengths = [draw(dice) for _ in range(waves * row.concurrency if row.concurrency > 1 else ALONE * waves)]
        return [loop(server, lengths, row.concurrency, dice) for server in servers]

    def log_ratio(found: Sequence[Loop], of: Callable[[Loop], float]) -> float:
        base, candidate = map(of, found)
        return math.log(candidate / base)

    def window(found: Loop) -> float:
        seen = steady(found.report, row.concurrency)
        assert seen
        return seen.throughput

    true = fmean(log_ratio(both(LONG), lambda found: long_run(found, row.concurrency)) for _ in range(2))
    three, five = ([both(waves) for _ in range(REPEATS)] for waves in (3, WAVES))
    logs = [log_ratio(found, window) for found in five]
    return Found(
        true=math.exp(true),
        whole=fmean(log_ratio(found, lambda one: one.throughput) for found in five) - true,
        three=fmean(log_ratio(found, window) for found in three) - true,
        five=fmean(logs) - true,
        scatter=stdev(logs),
    )


def line(row: Row, found: Found) -> str:
    off = f"{found.whole:+.1%} | {found.three:+.1%} | **{found.five:+.2%}** | ±{found.scatter:.1%} |"
    return f"{row.name} {found.true:.3f} | {off}"


def bias(text: str) -> float:
    """That of such a line."""
    return float(text.split("**")[1].rstrip("%")) / 100


def written(document: str) -> list[str]:
    """The lines of rows between the markers, in order."""
    between = document.split(BEGIN)[1].split(END)[0]
    return [found for found in between.splitlines() if found.startswith("| ") and found != HEAD]


def main() -> int:
    lines = []
    for row in rows():
        lines.append(line(row, measured(row)))
        print(lines[-1], flush=True)
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", "", HEAD, "|---" * 8 + "|", *lines, "", f"{END}{after}"]))
    faults = [text for text in lines if abs(bias(text)) > CLOSE]
    print("\n".join(["", *faults]) if faults else "\nevery row is right to half a percent")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
