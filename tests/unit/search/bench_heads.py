"""One search over the trees of two heads beside a search for each of them: `python -m tests.unit.search.bench_heads`.

Counts server starts, points and regret against the best tree of both heads, on seeds that no constant was chosen on.
Whoever searches twice takes the tree with the larger measured speed-up.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor

from tests.support import rooflines, strangers
from tests.unit.search.bench import NOISES, UNSEEN
from tests.unit.search.heads import OTHER, OWN, best_of, made, together, trees
from tests.unit.search.tables import mean, percentile

from paceline.core import BASELINE
from paceline.search import replay

SERVERS = 7
"""Of each make."""
Score = tuple[int, int, float]
"""Server starts, points, regret."""


def scores(make: str, seed: int) -> Iterator[Mapping[str, Score]]:
    heads = made(make, seed)
    truth = best_of(heads)
    for cv in NOISES:
        one = together(heads, cv, seed)
        two = [replay.replay(heads.grid(trees(), (head,)), cv, seed + i) for i, head in enumerate((OWN, OTHER))]
        best = max(two, key=lambda each: each.found.speed_up.ratio if each.found.speed_up else 1.0)
        regret = replay.regret(truth, best.found.winner or BASELINE)
        yield {
            "one search": (one.starts, len(one.points), one.regret),
            "a search for each head": (
                sum(each.starts for each in two), sum(len(each.points) for each in two), regret,
            ),
        }  # fmt: skip


def job(of: tuple[str, int]) -> list[Mapping[str, Score]]:
    return list(scores(*of))


def main() -> None:
    makes = (*rooflines.REGIMES, *strangers.EVERY)
    with ProcessPoolExecutor() as pool:
        jobs = [(make, UNSEEN + i) for make in makes for i in range(SERVERS)]
        every = [score for found in pool.map(job, jobs) for score in found]
    print(f"{len(every)} tables with noise")
    for name in every[0]:
        starts, points, regrets = zip(*(score[name] for score in every), strict=True)
        told = " / ".join(f"{100 * value:.2f}" for value in (mean(regrets), percentile(regrets, 0.95), max(regrets)))
        print(f"| {name} | {mean(starts):.1f} | {mean(points):.1f} | {told} |")


if __name__ == "__main__":
    main()
