"""Whether a rate was kept, as a round tells it from the client's details: simulated arrivals on simulated servers.

`python -m tests.gate.open_loops`, which `make bench` runs too, writes the table in docs/reports/steady-window.md and
fails where a server that keeps up is called saturated, or one that is far from it is not.

Requests arrive at random at a rate, answers are drawn as in `closed_loops`, and the server does one step after another
with all that are there, of which at most LIMIT are under way and the others wait.
"""

import itertools
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tests.gate.closed_loops import ACCEPTED, ANSWERS, DOCUMENT, Row, Server, pair

from paceline.evidence.loads import KEPT
from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.report import kept_rate

BEGIN, END = "<!-- `make bench` writes the rates that follow -->", "<!-- to here, the rates -->"
HEAD = "| rate, of the most possible | flagged, 20 s | 60 s | kept, estimated | true | ratio, 20 s | 60 s | 240 s |"
LIMIT = 48
REPEATS = 40
LOADS = (0.5, 0.8, 0.9, 1.0, 1.2, 1.5)
KEEPS_UP, FAR_FROM_IT = 0.8, 1.5
BASELINE, CANDIDATE = pair(Row(dataset="swe", concurrency=32, answers="median 220", prefill=0.0))
DRAW = ANSWERS["median 220"]
MOST = BASELINE.throughput(LIMIT) / fmean(DRAW(dice) for dice in [random.Random(0)] for _ in range(10_000))
"""Requests a second that the baseline can answer."""


def loop(server: Server, arrivals: Sequence[float], lengths: Sequence[int], dice: random.Random) -> dict[str, Any]:
    """What the client would report, of all times those of whole requests alone."""
    coming, left, times = iter(range(len(lengths))), list(lengths), [0.0] * len(lengths)
    following, waiting, under_way, now = next(coming, None), list[int](), list[int](), 0.0
    while following is not None or waiting or under_way:
        if following is not None and not waiting and not under_way:
            now = max(now, arrivals[following])
        while following is not None and arrivals[following] <= now:
            waiting.append(following)
            following = next(coming, None)
        joining = LIMIT - len(under_way)
        under_way, waiting = under_way + waiting[:joining], waiting[joining:]
        now += server.step(len(under_way))
        for one in under_way:
            left[one] -= server.tokens(ACCEPTED, dice)
            if left[one] <= 0:
                times[one] = now - arrivals[one]
        under_way = [one for one in under_way if left[one] > 0]
    sent = zip(arrivals, times, lengths, strict=True)
    return load_report([Answered(start=at, first=one, whole=one, tokens=length) for at, one, length in sent], now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of the baseline the rate that was kept, as a fraction of what came; of the candidate the ratio of the speeds of
    a request, which is what the gate compares at a rate."""

    kept: float
    ratio: float


def measured(load: float, seconds: int, seed: int) -> Found:
    dice, rate = random.Random(f"{load} {seconds} {seed}"), load * MOST
    count = round(rate * seconds)
    arrivals = list(itertools.accumulate(dice.expovariate(rate) for _ in range(count)))
    lengths = [DRAW(dice) for _ in range(count)]
    base, candidate = (loop(server, arrivals, lengths, dice) for server in (BASELINE, CANDIDATE))
    return Found(kept=(kept_rate(base, rate) or 0.0) / rate, ratio=sum(base["ttfts"]) / sum(candidate["ttfts"]))


def line(load: float) -> str:
    found: Mapping[int, list[Found]] = {
        seconds: [measured(load, seconds, seed) for seed in range(REPEATS if seconds < 240 else 4)]
        for seconds in (20, 60, 240)
    }
    told = (f"{fmean(one.kept < KEPT for one in found[seconds]):.0%}" for seconds in (20, 60))
    ratios = (f"{fmean(one.ratio for one in found[seconds]):.2f}x" for seconds in (20, 60, 240))
    kept = fmean(one.kept for one in found[60])
    return f"| {load:.0%} | {' | '.join(told)} | {kept:.0%} | {min(1.0, 1 / load):.0%} | {' | '.join(ratios)} |"


def cells(text: str) -> tuple[float, ...]:
    """Of such a line: the load, and how often saturation was told in 20 s and in 60 s."""
    return tuple(float(cell.strip().rstrip("%")) / 100 for cell in text.strip("| ").split(" | ")[:3])


def broken(text: str) -> bool:
    load, *told = cells(text)
    return any(told) if load <= KEEPS_UP else not all(share == 1 for share in told) if load >= FAR_FROM_IT else False


def written(document: str) -> list[str]:
    between = document.split(BEGIN)[1].split(END)[0]
    return [found for found in between.splitlines() if found.startswith("| ") and found != HEAD]


def tables(lines: Sequence[str]) -> Iterator[str]:
    yield from (BEGIN, "", HEAD, "|---" * 8 + "|", *lines, "", END)


def main() -> int:
    with ProcessPoolExecutor() as pool:
        lines = list(pool.map(line, LOADS))
    print("\n".join(lines))
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(before + "\n".join(tables(lines)) + after)
    faults = [text for text in lines if broken(text)]
    print("\n".join(["", *faults]) if faults else "\nsaturation is told where it is")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
