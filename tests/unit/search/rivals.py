"""What people do without a search, on the same tables with the same noise: each answers with an arm and its points."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log, log2
from statistics import fmean

import numpy as np
import optuna
from tests.support import replay

from paceline.core import BASELINE, Tree
from paceline.search import ArmOnWorkload, Limits
from paceline.search.steps import DEFAULT


@dataclass(slots=True)
class Bench:
    """Measures cells of a grid, and counts them."""

    grid: replay.Grid
    cv: float
    seed: int
    limits: Limits = replay.UNLIMITED
    """What the search took; for rivals that can do with any budget."""
    points: dict[ArmOnWorkload, list[float]] = field(default_factory=dict)
    starts: int = 0

    def measure(self, arm: str, *workloads: str) -> None:
        """In one server start; a failed cell costs as much."""
        self.starts += 1
        for workload in workloads:
            self.point(arm, workload)

    def point(self, arm: str, workload: str) -> None:
        """On the server that was started last."""
        cell = ArmOnWorkload(arm=arm, workload=workload)
        point = replay.measured(self.grid, cell, self.starts, self.cv, self.seed)
        self.points.setdefault(cell, []).append(log(point.throughput) if point.throughput else -99.0)

    @property
    def spent(self) -> int:
        """Points, repetitions included."""
        return sum(map(len, self.points.values()))

    def affords(self, starts: int, points: int) -> bool:
        """Within the limits."""
        return self.starts + starts <= (self.limits.starts or inf) and self.spent + points <= (
            self.limits.points or inf
        )

    def length(self, arm: str, workload: str) -> float:
        return self.grid.lengths[ArmOnWorkload(arm=arm, workload=workload)] or 1.0

    def speed(self, arm: str, *workloads: str) -> float:
        return fmean(fmean(self.points[ArmOnWorkload(arm=arm, workload=w)]) for w in workloads or self.grid.workloads)

    def best(self, *workloads: str) -> str:
        """Of the arms that were measured on these workloads, or on all."""
        arms = {cell.arm for cell in self.points}
        wanted = workloads or self.grid.workloads
        whole = [arm for arm in arms if all(ArmOnWorkload(arm=arm, workload=w) in self.points for w in wanted)]
        return max(sorted(whole), key=lambda arm: self.speed(arm, *wanted))


Strategy = Callable[[Bench], str]


def default(bench: Bench) -> str:
    """(3, 1, 4), unmeasured."""
    return next((name for name, tree in bench.grid.trees.items() if tree == DEFAULT), BASELINE)


def longest(bench: Bench) -> str:
    """The largest acceptance length, measured once."""
    lengths: dict[str, float] = {}
    for arm in bench.grid.trees:
        bench.measure(arm, *bench.grid.workloads)
        lengths[arm] = fmean(log(bench.length(arm, w)) for w in bench.grid.workloads)
    return max(lengths, key=lengths.__getitem__)


def grid(repetitions: int) -> Strategy:
    def strategy(bench: Bench) -> str:
        for _ in range(repetitions):
            for arm in (BASELINE, *bench.grid.trees):
                bench.measure(arm, *bench.grid.workloads)
        return bench.best()

    return strategy


def halving(bench: Bench) -> str:
    """Every arm on one workload, the better half on the next, and so on."""
    return _halved(bench, [BASELINE, *bench.grid.trees])


def _halved(bench: Bench, arms: list[str]) -> str:
    for i, workload in enumerate(bench.grid.workloads):
        for arm in arms:
            bench.measure(arm, workload)
        measured = bench.grid.workloads[: i + 1]
        ranked = sorted(arms, key=lambda arm: -bench.speed(arm, *measured))
        arms = ranked[: max(2, (len(arms) + 1) // 2)]
    return max(arms, key=bench.speed)


def chance(bench: Bench) -> str:
    """A sixth of the trees, drawn by lot, on every workload."""
    drawn = random.Random(bench.seed).sample(list(bench.grid.trees), max(2, len(bench.grid.trees) // 6))
    for arm in (BASELINE, *drawn):
        bench.measure(arm, *bench.grid.workloads)
    return bench.best()


def modelled(bench: Bench) -> str:
    """A deep chain on every workload, a straight line for step times through four widths on one, and halving among the
    eight that these put first."""
    trees, loads = bench.grid.trees, bench.grid.workloads
    deep = max(trees, key=lambda arm: (trees[arm].top_k == 1, trees[arm].num_steps))
    bench.measure(deep, *loads)
    bench.measure(BASELINE, loads[0])
    by_width = sorted((arm for arm in trees if arm != deep), key=lambda arm: trees[arm].num_draft_tokens)
    probes = [by_width[round(share * (len(by_width) - 1))] for share in (0.0, 0.5, 1.0)]
    for arm in probes:
        bench.measure(arm, loads[0])
    seen = [deep, *probes]
    times = [
        bench.length(arm, loads[0]) * exp(bench.speed(BASELINE, loads[0]) - bench.speed(arm, loads[0])) for arm in seen
    ]
    line = np.linalg.lstsq(
        np.array([(trees[arm].num_draft_tokens - 1, trees[arm].num_steps) for arm in seen]),
        np.array(times) - 1,
        rcond=None,
    )[0]
    guesses = [_guess(trees[deep].num_steps, bench.length(deep, workload)) for workload in loads]

    def score(arm: str) -> float:
        tree = trees[arm]
        time = 1 + float(line @ (tree.num_draft_tokens - 1, tree.num_steps))
        return fmean(log(_tokens(tree, guess)) for guess in guesses) - log(max(0.5, time))

    return _halved(bench, [BASELINE, *sorted(trees, key=lambda arm: -score(arm))[:8]])


def _tokens(tree: Tree, guess: float) -> float:
    """Of a step, if every level finds the next token with the same probability, the better the more it tries."""
    tries = min(tree.top_k, max(1.0, (tree.num_draft_tokens - 1) / tree.num_steps))
    level = 1 - (1 - guess) ** (tries**0.5)
    return fmean([level**i for i in range(tree.num_steps + 1)]) * (tree.num_steps + 1)


def _guess(depth: int, length: float) -> float:
    """The probability with which a chain of this depth has this length."""
    chain = Tree(num_steps=depth, top_k=1, num_draft_tokens=depth + 1)
    return min((i / 200 for i in range(1, 200)), key=lambda guess: abs(_tokens(chain, guess) - length))


def tpe(bench: Bench) -> str:
    """Optuna's sampler of trees, on depth and the logarithms of branching and width, and its median pruner from one
    workload to the next, for as many server starts and points as the search took. A tree that comes again costs
    nothing; the default comes first."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    trees, loads = bench.grid.trees, bench.grid.workloads
    places = {arm: (tree.num_steps, log2(tree.top_k), log2(tree.num_draft_tokens)) for arm, tree in trees.items()}
    ends = {
        name: (min(values), max(values)) for name, values in zip(SPACE, zip(*places.values(), strict=True), strict=True)
    }
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=bench.seed, n_startup_trials=4, multivariate=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.enqueue_trial(dict(zip(SPACE, (3.0, 0.0, 2.0), strict=True)))
    bench.measure(BASELINE, *loads)
    for _ in range(MOST_TRIALS):
        trial = study.ask({name: optuna.distributions.FloatDistribution(*ends[name]) for name in SPACE})
        asked = [trial.params[name] for name in SPACE]
        arm = min(trees, key=lambda arm: sum((a - b) ** 2 for a, b in zip(places[arm], asked, strict=True)))
        fresh = ArmOnWorkload(arm=arm, workload=loads[0]) not in bench.points
        if fresh and not bench.affords(1, len(loads)):
            break
        study.tell(trial, *_tried(bench, trial, arm, fresh))
    return bench.best()


SPACE = ("numSteps", "log2 topK", "log2 numDraftTokens")
MOST_TRIALS = 100
Told = tuple[float | None, optuna.trial.TrialState]


def _tried(bench: Bench, trial: optuna.Trial, arm: str, fresh: bool) -> Told:
    bench.starts += fresh
    seen: Sequence[str] = ()
    for i, workload in enumerate(bench.grid.workloads):
        if fresh:
            bench.point(arm, workload)
        elif ArmOnWorkload(arm=arm, workload=workload) not in bench.points:
            return None, optuna.trial.TrialState.PRUNED
        seen = (*seen, workload)
        speed = bench.speed(arm, *seen) - bench.speed(BASELINE, *seen)
        trial.report(speed, i)
        if fresh and i + 1 < len(bench.grid.workloads) and trial.should_prune():
            return None, optuna.trial.TrialState.PRUNED
    return speed, optuna.trial.TrialState.COMPLETE


RIVALS: Mapping[str, Strategy] = {
    "the default (3, 1, 4)": default,
    "largest acceptance length": longest,
    "grid, once": grid(1),
    "grid, three times": grid(3),
    "successive halving": halving,
    "random": chance,
    "a model, then halving": modelled,
    "Optuna's TPE, pruned": tpe,
}
