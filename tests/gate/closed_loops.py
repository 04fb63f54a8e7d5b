"""How right a closed loop's numbers are: simulated clients on simulated servers, read by the code of a round.

`python -m tests.gate.closed_loops`, which `make bench` runs too, writes the table in docs/reports/steady-window.md and
fails where a row is off by more than half a percent.

A server does one step after another. In a step each request under way gets one token, or one to four where it
speculates; the step takes as long as the published throughput at so many requests says, a straight line in
log-log between those at 1 and 32. A request that joins is prefilled before the step, and all others wait for it.
How many tokens a step is worth differs between prompts by the row's spread.

What is true is the ratio in a loop without end of the very prompts that a round drew: the beginning and the end of a
loop are in what is measured, never in what is meant. Such a loop's places are always full, so its time is that of its
prefills and of its requests' steps with all places full (`endless`); test_closed_loops.py holds that to a long loop.
"""

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tests.support.campaigns import BASELINE_1, BASELINE_32, WIDE_1, WIDE_32
from tests.support.tables import short, split, whole

from paceline.core import WAVES
from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.report import steady

DOCUMENT = Path(__file__).parents[2] / "docs" / "reports" / "steady-window.md"
BEGIN, END = "<!-- `make bench` writes what follows -->", "<!-- to here -->"
HEAD = "| workload | answers | prefill | true | whole time | 3 × | 5 × | one round |"
SPREADS = (0.0, 0.15, 0.25)
"""Each cell has a value for each of them."""
REPEATED = 2
"""Columns in which a cell may repeat the one above."""
REPEATS = 48
CLOSE = 0.005
ACCEPTED = 2.45
"""Tokens of a step that speculates, in the mean over prompts; one to four in each."""
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
    spread: float = 0.0
    """Between prompts, of the tokens of a step that speculates: a standard deviation over the mean."""

    @property
    def name(self) -> str:
        """The seed of what is drawn."""
        return f"| {self.dataset}@{self.concurrency} | {self.answers} | {self.prefill:.0%} | {self.spread:.0%} |"

    @property
    def cells(self) -> str:
        percent = f"{100 * self.prefill:.0f} | {100 * self.spread:.0f}"
        return f"| {self.dataset}@{self.concurrency} | {self.answers} | {percent} |"


def rows() -> Iterator[Row]:
    """One request at a time has no ramp and no drain, so nothing can be off."""
    for concurrency, dataset, answers in itertools.product((32, 8), ("terminal", "swe"), ANSWERS):
        for prefill, spread in itertools.product((0.0, 0.1), SPREADS):
            yield Row(dataset=dataset, concurrency=concurrency, answers=answers, prefill=prefill, spread=spread)


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
        return under_way * (ACCEPTED if self.speculates else 1.0) / self.throughput(under_way)

    def tokens(self, worth: float, dice: random.Random) -> int:
        """Of a step, for a request whose prompt makes it worth so many in the mean."""
        return int(worth) + (dice.random() < worth % 1) if self.speculates else 1


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
class Prompt:
    length: int
    worth: float
    """Tokens a step, in the mean, of a server that speculates."""


def prompts(row: Row, many: int, dice: random.Random) -> list[Prompt]:
    """Worth log-normal in between: no step has fewer tokens than one, nor more than four."""
    draw, spread = ANSWERS[row.answers], row.spread
    worth = (ACCEPTED * dice.lognormvariate(-(spread**2) / 2, spread) for _ in range(many))
    return [Prompt(draw(dice), min(4.0, max(1.0, mean))) for mean in worth]


@dataclass(frozen=True, slots=True)
class Loop:
    """What the client would report, when the pieces of each answer came, and output tokens per second of all
    of its time."""

    report: Mapping[str, Any]
    arrivals: Sequence[Sequence[float]]

    @property
    def throughput(self) -> float:
        return float(sum(self.report["output_lens"]) / self.report["duration"])


def loop(
    server: Server, sent: Sequence[Prompt], concurrency: int, dice: random.Random, *, turns: int = 1, cached: float = 0
) -> Loop:
    """`turns`: prompts of a conversation; `cached`: how much of its later ones' prefill is saved."""
    left, starts = [prompt.length for prompt in sent], [0.0] * len(sent)
    arrivals: list[list[float]] = [[] for _ in sent]
    begins, under_way, now = iter(range(0, len(sent), turns)), list[int](), 0.0
    steps = [server.step(most) for most in range(1, concurrency + 1)]
    joined = list(itertools.islice(begins, concurrency))
    while under_way or joined:
        for one in joined:
            starts[one] = now
        now += server.prompt * sum(1 - cached if one % turns else 1 for one in joined)
        under_way, ended = [*under_way, *joined], list[int]()
        while not ended:
            now += steps[len(under_way) - 1]
            for one in under_way:
                left[one] -= server.tokens(sent[one].worth, dice)
                arrivals[one].append(now)
            ended = [one for one in under_way if left[one] <= 0]
        under_way = [one for one in under_way if left[one] > 0]
        following = (one + 1 if (one + 1) % turns else next(begins, None) for one in ended)
        joined = [one for one in following if one is not None]
    answered = [
        Answered(
            start=start,
            first=came[0] - start,
            gaps=tuple(after - before for before, after in itertools.pairwise(came)),
            whole=came[-1] - start,
            tokens=prompt.length,
        )
        for came, start, prompt in zip(arrivals, starts, sent, strict=True)
    ]
    numbers = [one % turns for one in range(len(sent))]
    return Loop({**load_report(answered, now), "turns": numbers}, arrivals)


def endless(server: Server, found: Loop, concurrency: int, *, cached: float = 0) -> float:
    """Output tokens per second of a loop that sends the same requests for ever."""
    steps = sum(len(came) for came in found.arrivals)
    prefills = sum(1 - cached if turn else 1 for turn in found.report["turns"])
    seconds = server.prompt * prefills + server.step(concurrency) * steps / concurrency
    return float(sum(found.report["output_lens"]) / seconds)


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
    servers, dice = pair(row), random.Random(row.name)

    def log_ratios(waves: int, *estimates: Callable[[Server, Loop], float]) -> list[float]:
        """One round's, by each of the estimates."""
        sent = prompts(row, waves * row.concurrency, dice)
        base, candidate = ((server, loop(server, sent, row.concurrency, dice)) for server in servers)
        return [math.log(estimate(*candidate) / estimate(*base)) for estimate in estimates]

    def window(_: Server, found: Loop) -> float:
        seen = steady(found.report, row.concurrency)
        assert seen
        return seen.throughput

    def true(server: Server, found: Loop) -> float:
        return endless(server, found, row.concurrency)

    three = [log_ratios(3, true, window) for _ in range(REPEATS)]
    five = [log_ratios(WAVES, true, window, lambda _, found: found.throughput) for _ in range(REPEATS)]
    return Found(
        true=math.exp(fmean(ratio for ratio, *_ in five)),
        whole=fmean(whole - ratio for ratio, _, whole in five),
        three=fmean(seen - ratio for ratio, seen in three),
        five=fmean(seen - ratio for ratio, seen, _ in five),
        scatter=stdev(seen for _, seen, _ in five),
    )


def line(row: Row, found: Found) -> str:
    """Percent but for the true ratio."""
    off = f"{_off(found.whole, 1)} | {_off(found.three, 1)} | {_off(found.five, 2)} | {100 * found.scatter:.1f} |"
    return f"{row.cells} {found.true:.3f} | {off}"


def _off(fraction: float, digits: int) -> str:
    text = f"{100 * fraction:+.{digits}f}"
    return text if float(text) else "0"


def bias(text: str) -> float:
    """That of such a line."""
    return float(text.split(" | ")[7]) / 100


def written(document: str) -> list[str]:
    """The lines of rows between the markers, in order, with all cells."""
    between = document.split(BEGIN)[1].split(END)[0]
    rows = whole((found for found in between.splitlines() if found.startswith("| ") and found != HEAD), REPEATED)
    return [text for row in rows for text in _apart(row)]


def together(lines: Sequence[str]) -> Iterator[str]:
    """The rows of the document: those of all spreads are one."""
    for first in range(0, len(lines), len(SPREADS)):
        cells = [split(text) for text in lines[first : first + len(SPREADS)]]
        values = [" ".join(column) for column in zip(*(row[4:] for row in cells), strict=True)]
        yield f"| {' | '.join([*cells[0][:3], *values])} |"


def _apart(row: str) -> Iterator[str]:
    cells = split(row)
    for spread, values in zip(SPREADS, zip(*(cell.split() for cell in cells[3:]), strict=True), strict=True):
        yield f"| {' | '.join([*cells[:3], f'{100 * spread:.0f}', *values])} |"


def main() -> int:
    lines = []
    for row in rows():
        lines.append(line(row, measured(row)))
        print(lines[-1], flush=True)
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    table = [HEAD, "|-" * 8 + "|", *short(together(lines), REPEATED)]
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", "", *table, "", f"{END}{after}"]))
    faults = [text for text in lines if abs(bias(text)) > CLOSE]
    print("\n".join(["", *faults]) if faults else "\nevery row is right to half a percent")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
