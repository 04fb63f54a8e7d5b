"""How fast a target decodes: throughput and acceptance per (tree, dataset, batch size).

A profile (`data/profiles/*.json`) has per dataset
  baseline      output tokens/s without speculation by batch size (published)
  probability   that the head's next token is accepted (assumed: acceptance lengths are not published)
  draft, verify cost of one draft step and of one more verified token, in baseline steps, at the same batch sizes
from which, for a tree of s steps, k branches and n draft tokens,
  A = 1 + q + q² + … + q^s        q = 1 − (1 − p)^(w^¼), w = (n − 1)/s branches a level, at most k
  C = 1 + s·draft + (n − 1)·verify
  throughput = baseline · A / C
`draft` and `verify` are solved from the published tables, so the published points come out exactly (the script that
does it, and the tables: tests/contract/make_profiles.py). The quarter power says how little a second guess adds; it is
the largest of the simple choices for which every cost comes out positive.

Between two of its batch sizes throughput is a straight line in log-log, and below the first it goes on as between the
first two. Beyond the last it goes on with the baseline's slope until a forward pass carries COMPUTE_BOUND tokens (batch
× verified tokens), then stays: a wider tree saturates earlier, which is what makes speculation lose at high load.

Two more facts of a published table, where it has them: `seats`, how many requests the KV cache holds with and without
a head, and `scheduled`, what vLLM's schedule of depths costs on top.
"""

import bisect
import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from paceline_emulator.models import Model, load

COMPUTE_BOUND = 512
NGRAM_ACCEPTANCE = 0.5
"""Assumed: a lookup in what was already said is accepted half as often as a trained head."""

GENERIC = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is drafted a step. `costly` is False where drafting is a lookup; `worth` scales the acceptance."""

    steps: int
    branches: int
    width: int
    costly: bool = True
    worth: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Fractions of a baseline step, at one batch size."""

    draft: float
    verify: float

    def of(self, shape: Shape) -> float:
        """The time of a step with this shape, in baseline steps."""
        return 1 + (shape.steps * self.draft if shape.costly else 0) + (shape.width - 1) * self.verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Throughputs in output tokens/s and costs, by batch size: the same sizes, two at least."""

    baseline: Mapping[float, float]
    probability: float
    cost: Mapping[float, Cost]

    def times(self, factor: float) -> "Dataset":
        return replace(self, baseline={batch: speed * factor for batch, speed in self.baseline.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Requests that the KV cache holds at a time: a head takes its share of the memory."""

    baseline: int
    speculative: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """What a schedule of depths by batch size is worth, of the throughput of always drafting as many: where it drafts,
    and the least and the most where it rests (vllm#49548)."""

    drafting: float
    resting: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    datasets: Mapping[str, Dataset]
    seats: Seats | None = None
    scheduled: Scheduled | None = None

    def times(self, speed: float) -> "Profile":
        """With every dataset so much faster."""
        return replace(self, datasets={name: dataset.times(speed) for name, dataset in self.datasets.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """One dataset under one shape: the acceptance length, and output tokens/s by batch size, rising and two at least,
    with the slope beyond."""

    acceptance: float
    points: Mapping[float, float]
    slope_beyond: float
    width: int

    def accepting(self, left: float) -> "Pace":
        """With this fraction of its accepted draft tokens: a step takes as long, and yields less."""
        length = 1 + (self.acceptance - 1) * left
        return replace(self.times(length / self.acceptance), acceptance=length)

    def times(self, factor: float) -> "Pace":
        return replace(self, points={batch: throughput * factor for batch, throughput in self.points.items()})

    def throughput(self, batch: float) -> float:
        """Output tokens/s of a closed loop of `batch` requests."""
        sizes = list(self.points)
        last = sizes[-1]
        if batch > last:
            full = max(last, COMPUTE_BOUND / self.width)
            return self.points[last] * math.pow(min(batch, full) / last, self.slope_beyond)
        above = min(max(1, bisect.bisect_left(sizes, batch)), len(sizes) - 1)
        low, high = sizes[above - 1], sizes[above]
        return self.points[low] * math.pow(max(batch, 1) / low, slope(self.points, low, high))


def slope(points: Mapping[float, float], low: float, high: float) -> float:
    """Between two batch sizes, in log-log."""
    return math.log(points[high] / points[low]) / math.log(high / low)


def acceptance(probability: float, shape: Shape) -> float:
    """Tokens a verify step yields, the one that is always right included."""
    levels = min(shape.steps, shape.width - 1)
    if levels < 1:
        return 1.0
    branches = min(shape.branches, (shape.width - 1) / levels)
    guess = (1 - math.pow(1 - probability, math.pow(branches, 0.25))) * shape.worth
    return sum(math.pow(guess, level) for level in range(levels + 1))


def pace(dataset: Dataset, shape: Shape | None, forced: float | None = None) -> Pace:
    """`shape` None: no speculation. `forced`: an acceptance length that is given instead of following from the head."""
    baseline = dataset.baseline
    beyond = slope(baseline, *list(baseline)[-2:])
    if shape is None:
        return Pace(acceptance=1.0, points=baseline, slope_beyond=beyond, width=1)
    length = acceptance(dataset.probability, shape) if forced is None else forced
    return Pace(
        acceptance=length,
        points={batch: baseline[batch] * length / dataset.cost[batch].of(shape) for batch in baseline},
        slope_beyond=beyond,
        width=shape.width,
    )


def paces(profile: Profile, shape: Shape | None, forced: float | None = None) -> dict[str | None, Pace]:
    """By dataset; under None, for text of no known dataset, the geometric mean of all."""
    known: dict[str | None, Pace] = {name: pace(dataset, shape, forced) for name, dataset in profile.datasets.items()}
    everything = list(known.values())
    typical = replace(
        everything[0],
        acceptance=_geometric(p.acceptance for p in everything),
        points={batch: _geometric(p.points[batch] for p in everything) for batch in everything[0].points},
        slope_beyond=sum(p.slope_beyond for p in everything) / len(everything),
    )
    return {**known, None: typical}


def shape_of(args: Mapping[str, Any]) -> Shape | None:
    """What a server with these resolved arguments drafts; None: nothing."""
    algorithm = args["speculative_algorithm"]
    if algorithm is None:
        return None
    steps, branches, width = (
        args["speculative_num_steps"] or 0,
        args["speculative_eagle_topk"] or 1,
        args["speculative_num_draft_tokens"] or 1,
    )
    if algorithm == "NGRAM":
        return Shape(steps=max(1, steps), branches=branches, width=width, costly=False, worth=NGRAM_ACCEPTANCE)
    if algorithm in ("DFLASH", "DSPARK", "UNO"):
        return Shape(steps=width - 1, branches=1, width=width, costly=False)
    return Shape(steps=steps, branches=branches, width=width)


def for_target(target: Model, speed: float = 1.0) -> Profile:
    """`speed` times the profile whose facts are all in the target's configuration, else the generic one."""
    profiles = [json.loads(entry.read_text()) for entry in sorted(_data().iterdir(), key=lambda entry: entry.name)]
    facts = {**target.text, "architectures": target.architectures}
    for found in profiles:
        if found["name"] != GENERIC and all(facts.get(key) == value for key, value in found["target"].items()):
            return read(found).times(speed)
    return generic().times(speed)


def generic() -> Profile:
    """For targets that nothing is published about."""
    return read(json.loads((_data() / f"{GENERIC}.json").read_text()))


def _data() -> Any:
    return files(__package__) / "data" / "profiles"


def read(found: dict[str, Any]) -> Profile:
    """Of a file's content."""
    seats, scheduled = found.get("seats"), found.get("scheduled")
    return Profile(
        name=found["name"],
        datasets={name: _dataset(dataset) for name, dataset in found["datasets"].items()},
        seats=Seats(**seats) if seats else None,
        scheduled=Scheduled(drafting=scheduled["drafting"], resting=tuple(scheduled["resting"])) if scheduled else None,
    )


def _dataset(found: dict[str, Any]) -> Dataset:
    return Dataset(
        baseline={float(batch): value for batch, value in found["baseline"].items()},
        probability=found["probability"],
        cost={float(batch): Cost(**cost) for batch, cost in found["cost"].items()},
    )


def _geometric(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


if __name__ == "__main__":  # `python -m paceline_emulator.profile DIR`: the name of the profile of the model in DIR
    try:
        print(for_target(load(sys.argv[1], None, cache=Path(), offline=True)).name)
    except OSError as unreadable:
        sys.exit(str(unreadable))
