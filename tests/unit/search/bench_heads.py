"""One search over the trees of two heads beside a search for each of them: `python -m tests.unit.search.bench_heads`.

Counts server starts, points and regret against the best tree of both heads, on seeds that no constant was chosen on;
writes the table of docs/search.md, and fails if a bound is broken. Whoever searches twice takes the tree with the
larger measured speed-up.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.support import rooflines, strangers
from tests.unit.search.bench import NOISES, UNSEEN
from tests.unit.search.heads import OTHER, OWN, best_of, made, together, trees
from tests.unit.search.tables import mean, percentile

from paceline.core import BASELINE
from paceline.search import replay

DOCUMENT = Path("docs/search.md")
BEGIN, END = "<!-- several heads -->", "<!-- end of several heads -->"
SERVERS = 7
"""Of each make."""
ONE, OF_ITS_OWN, NONE_LOST, TWO = (
    "one search",
    "one search, against the best of the trees that it has",
    "the best of the trees that it has",
    "a search for each head",
)
BOUNDS = {ONE: (0.0075, 0.03), OF_ITS_OWN: (0.005, 0.025)}
"""At most: mean and 95th percentile of the regret. That of one head is kept for the trees that a search has; half of
each head's are not among them."""
SHARE = 0.75
"""Server starts of one search, of those of a search for each head, at most."""
Score = tuple[int, int, float]
"""Server starts, points, regret."""


def scores(make: str, seed: int) -> Iterator[Mapping[str, Score]]:
    heads = made(make, seed)
    truth, had = best_of(heads), heads.grid(trees(OTHER), (OWN, OTHER)).speed_ups
    lost = replay.regret(truth, max(had, key=lambda name: had[name]))
    for cv in NOISES:
        one = together(heads, cv, seed)
        two = [replay.replay(heads.grid(trees(), (head,)), cv, seed + i) for i, head in enumerate((OWN, OTHER))]
        best = max(two, key=lambda each: each.found.speed_up.ratio if each.found.speed_up else 1.0)
        yield {
            ONE: (one.starts, len(one.points), one.regret),
            OF_ITS_OWN: (one.starts, len(one.points), replay.regret(had, one.found.winner or BASELINE)),
            NONE_LOST: (0, 0, lost),
            TWO: (
                sum(each.starts for each in two),
                sum(len(each.points) for each in two),
                replay.regret(truth, best.found.winner or BASELINE),
            ),
        }


def job(of: tuple[str, int]) -> list[Mapping[str, Score]]:
    return list(scores(*of))


def counted() -> list[Mapping[str, Score]]:
    makes = (*rooflines.REGIMES, *strangers.EVERY)
    with ProcessPoolExecutor() as pool:
        jobs = [(make, UNSEEN + i) for make in makes for i in range(SERVERS)]
        return [score for found in pool.map(job, jobs) for score in found]


def table(every: Sequence[Mapping[str, Score]]) -> Iterator[str]:
    yield "| | server starts | points | regret in %: mean / 95th percentile / largest |"
    yield "|---|---|---|---|"
    for name in every[0]:
        starts, points, regrets = zip(*(score[name] for score in every), strict=True)
        told = " / ".join(f"{100 * value:.2f}" for value in (mean(regrets), percentile(regrets, 0.95), max(regrets)))
        cost = " | ".join(f"{mean(values):.1f}" if any(values) else "" for values in (starts, points))
        yield f"| {name} | {cost} | {told} |"


def broken(every: Sequence[Mapping[str, Score]]) -> Iterator[str]:
    for name, bounds in BOUNDS.items():
        regrets = [score[name][2] for score in every]
        for value, bound, of in zip((mean(regrets), percentile(regrets, 0.95)), bounds, ("mean", "95th"), strict=True):
            if value > bound:
                yield f"{name}: {of} regret {value:.4f} is above {bound}"
    share = mean(score[ONE][0] for score in every) / mean(score[TWO][0] for score in every)
    if share > SHARE:
        yield f"{ONE}: {share:.2f} of the server starts of {TWO} is above {SHARE}"


def main() -> int:
    every = counted()
    rows, faults = list(table(every)), list(broken(every))
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text("\n".join([f"{before}{BEGIN}", "", *rows, "", f"{END}{rest.partition(END)[2]}"]))
    print("\n".join([f"{len(every)} tables with noise", *rows, "", *faults]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
