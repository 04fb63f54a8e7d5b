"""Synthetic tables for the search by other formulas than those of `rooflines`, a family for each way of thinking.

Each family draws a server, and says how many tokens a tree's step gives on a workload and how long it takes. No two
share a formula, and `paceline.search` imports nothing of this. `CHOSEN` are those that were looked at when constants of
the search were chosen, `HELD_OUT` those that were not.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from tests.support import rooflines
from tests.support.rooflines import Shape

Accepted = Callable[[Shape, int], float]
"""Tokens of a step on a workload, the root's included."""
Takes = Callable[[Shape, int], float]
"""Time of a step on a workload, in any unit; the baseline is the shape (0, 1, 1)."""
NONE: Shape = (0, 1, 1)


@dataclass(frozen=True, slots=True)
class Server:
    accepted: Accepted
    takes: Takes
    own: float = 0.005
    """Standard deviation of what a tree on a workload has to itself, in ln."""


def log_uniform(chance: Random, low: float, high: float) -> float:
    return math.exp(chance.uniform(math.log(low), math.log(high)))


def hits(chance: Random, workloads: int, low: float, high: float, spread: float) -> list[float]:
    mean = chance.uniform(low, high)
    return [min(0.96, max(0.15, chance.gauss(mean, spread))) for _ in range(workloads)]


def chain(levels: Sequence[float]) -> float:
    """Tokens of a chain whose levels are right with these probabilities, each if those before were."""
    total, path = 1.0, 1.0
    for level in levels:
        path *= level
        total += path
    return total


def ceiling(chance: Random, workloads: int) -> Server:
    """A hard roofline: memory or arithmetic, whichever is longer. The same probability on all levels; branches that are
    verified are further tries at the same token."""
    right = hits(chance, workloads, 0.5, 0.88, 0.06)
    second = chance.uniform(0.15, 0.6)
    arithmetic, head = log_uniform(chance, 0.004, 0.5), chance.uniform(0.02, 0.12)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        tries = min(branching, max(1.0, (width - 1) / depth))
        p = right[workload]
        return chain([1 - (1 - p) * (1 - second * p) ** (tries - 1)] * depth)

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        return max(1.0, arithmetic * width) + depth * max(head, head * arithmetic * branching)

    return Server(accepted, takes)


def ranked(chance: Random, workloads: int) -> Server:
    """As EAGLE-2 drafts: a head's n-th guess is right as Zipf's law says, of a token that may be easy or hard; a tree
    keeps its likeliest nodes by what the head believes, which is off."""
    exponent = [chance.uniform(1.2, 3.2) for _ in range(workloads)]
    covered = [chance.uniform(0.75, 0.97) for _ in range(workloads)]
    belief, fade = chance.uniform(0.7, 1.4), chance.uniform(0.0, 0.05)
    verify, graph = log_uniform(chance, 0.0008, 0.03), chance.choice((1, 8, 16, 32))
    head, mask = chance.uniform(0.02, 0.1), chance.uniform(0.0, 0.08)

    def guesses(workload: int, level: int, count: int) -> list[float]:
        shares = [rank ** -exponent[workload] for rank in range(1, 33)]
        scale = covered[workload] * (1 - fade * level) / sum(shares)
        return [share * scale for share in shares[:count]]

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        levels = [guesses(workload, level, branching) for level in range(depth)]
        ready = [(-(p**belief), p, 1) for p in levels[0]]
        heapq.heapify(ready)
        total = 1.0
        for _ in range(width - 1):
            if not ready:
                break
            _, path, level = heapq.heappop(ready)
            total += path
            if level < depth:
                for p in levels[level]:
                    heapq.heappush(ready, (-((path * p) ** belief), path * p, level + 1))
        return total

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        padded = math.ceil(width / graph) * graph
        return 1 + verify * (padded - 1) + depth * head + (mask if branching > 1 else 0.0)

    return Server(accepted, takes)


def stairs(chance: Random, workloads: int) -> Server:
    """Step time is linear in the tokens and jumps where a tile or a CUDA graph is full; a pass of the head costs its
    branches. Tokens of a chain come from a falling list; branching adds a share that saturates in the width."""
    first = hits(chance, workloads, 0.55, 0.9, 0.08)
    falls, flat = chance.uniform(0.0, 0.06), chance.uniform(0.2, 0.5)
    gain, half = chance.uniform(0.04, 0.22), chance.uniform(4, 20)
    slope, jump, tile = log_uniform(chance, 0.0005, 0.02), chance.uniform(0.0, 0.12), chance.choice((8, 16, 32))
    head, branch = chance.uniform(0.015, 0.09), chance.uniform(0.0, 0.012)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        tokens = chain([max(flat, first[workload] - falls * level) for level in range(depth)])
        more = gain * math.log2(branching) * (1 - math.exp(-(width - 1) / half))
        return 1 + min((tokens - 1) * (1 + more), float(depth))

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        return 1 + slope * width + jump * (math.ceil(width / tile) - 1) + depth * (head + branch * (branching - 1))

    return Server(accepted, takes)


def crowd(chance: Random, workloads: int) -> Server:
    """A roofline for a number of requests at once, from 1 to 64, by which the verified tokens are multiplied: weights
    are read once, caches once for each request, and arithmetic grows with both."""
    requests = round(log_uniform(chance, 1, 64))
    levels = [
        sorted((min(0.97, max(0.1, chance.gauss(p, 0.05))) for _ in range(16)), reverse=True)
        for p in hits(chance, workloads, 0.5, 0.85, 0.08)
    ]
    wider = chance.uniform(0.2, 0.7)
    ridge, sharp = log_uniform(chance, 60, 400), chance.choice((2, 4, 12))
    cache, part, launch = chance.uniform(0.0, 0.01), chance.uniform(0.02, 0.08), chance.uniform(0.0, 0.03)

    def roof(memory: float, tokens: float) -> float:
        return float((memory**sharp + (tokens / ridge) ** sharp) ** (1 / sharp))

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        spare = max(0.0, (width - 1) / depth)
        tries = 1 + wider * math.log(min(spare, branching + 0.25 * spare)) if branching > 1 else 1.0
        return chain([1 - (1 - p) ** max(1.0, tries) for p in levels[workload][:depth]])

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        target = roof(1 + cache * requests, requests * width)
        return target + depth * (part * roof(1.0, requests * branching) + launch)

    return Server(accepted, takes)


def apart(chance: Random, workloads: int) -> Server:
    """Workloads of which one accepts nearly all and another next to nothing, and whose contexts make steps longer: the
    best tree of one is a bad one of another."""
    right = [chance.uniform(0.3, 0.93) for _ in range(workloads)]
    sibling = [chance.uniform(0.1, 0.5) for _ in range(workloads)]
    context = [chance.uniform(0.0, 0.3) for _ in range(workloads)]
    verify, free, head = log_uniform(chance, 0.001, 0.05), chance.choice((0, 7, 15, 31)), chance.uniform(0.02, 0.12)
    kernel = chance.uniform(1.0, 1.12)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        room = (width - 1) / depth
        tries = min(float(branching), 1 + max(0.0, room - 1) ** 0.8)
        p, more = right[workload], sibling[workload]
        return chain([p + (1 - p) * more * (1 - 0.5 ** (tries - 1))] * depth)

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        target = 1 + context[workload] + verify * max(0, width - 1 - free)
        return (kernel if branching > 1 else 1.0) * target + depth * head

    return Server(accepted, takes, own=0.01)


def hosted(chance: Random, workloads: int) -> Server:
    """The host launches what the device computes, and the slower of both is waited for; tokens come easy for a while
    and then hard."""
    easy, hard = hits(chance, workloads, 0.8, 0.95, 0.03), hits(chance, workloads, 0.2, 0.5, 0.06)
    share = hits(chance, workloads, 0.35, 0.8, 0.1)
    help_hard = chance.uniform(0.1, 0.4)
    host, passes, device = chance.uniform(0.3, 1.0), chance.uniform(0.01, 0.08), log_uniform(chance, 0.001, 0.04)
    head = chance.uniform(0.01, 0.06)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        full = min(1.0, (width - 1) / (depth * branching))
        second = help_hard * math.log2(branching) * full
        hard_one = hard[workload] + (1 - hard[workload]) * min(0.8, second)
        easy_one = easy[workload] + (1 - easy[workload]) * min(0.8, 0.6 * second)
        return share[workload] * chain([easy_one] * depth) + (1 - share[workload]) * chain([hard_one] * depth)

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        return max(host + passes * depth, 1 + device * (width - 1) + head * depth * (1 + 0.05 * branching))

    return Server(accepted, takes)


def experts(chance: Random, workloads: int) -> Server:
    """A mixture of experts: more tokens read more experts, steeply at first. Contexts differ in how sure the head is of
    them, as a Beta distribution: who was right so far is likely to be right again."""
    mean, sure = hits(chance, workloads, 0.5, 0.8, 0.07), chance.uniform(1.5, 8)
    again = chance.uniform(0.2, 0.55)
    used, shared, many = chance.uniform(0.01, 0.15), chance.uniform(0.2, 0.6), round(log_uniform(chance, 1, 16))
    head, wide = chance.uniform(0.02, 0.1), chance.uniform(0.0, 0.15)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        a, b = mean[workload] * sure, (1 - mean[workload]) * sure
        useful = min(branching, 1 + (width - 1 - depth) / max(1.0, 0.6 * depth)) if branching > 1 else 1.0
        b *= useful**-again
        return chain([(a + level) / (a + b + level) for level in range(depth)])

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        read = shared + (1 - shared) * (1 - (1 - used) ** (width * many))
        return read + depth * head * (1 + wide * math.sqrt(branching - 1))

    return Server(accepted, takes)


def paged(chance: Random, workloads: int) -> Server:
    """Waves of blocks on the device, paged caches that branching makes slower for each token, and a head whose first
    pass costs more. What is accepted is a straight line in the logarithm of the nodes, up to the depth."""
    right = hits(chance, workloads, 0.55, 0.88, 0.07)
    wider, deepest = chance.uniform(0.05, 0.3), chance.uniform(0.75, 0.97)
    wave, waves = chance.choice((12, 20, 48)), chance.uniform(0.02, 0.25)
    page, first, head = chance.uniform(0.0, 0.006), chance.uniform(0.0, 0.08), chance.uniform(0.01, 0.09)

    def accepted(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        base = chain([right[workload] ** (1 + 0.03 * level) for level in range(depth)])
        wide = wider * math.log(min(width - 1, depth * branching) / depth) if branching > 1 else 0.0
        return float(1 + min(base - 1 + wide * base**0.8, deepest * depth))

    def takes(shape: Shape, workload: int) -> float:
        depth, branching, width = shape
        target = 1 + waves * (width // wave) + page * width * (branching > 1)
        return target + (first + depth * head if depth else 0.0)

    return Server(accepted, takes)


Family = Callable[[Random, int], Server]
CHOSEN: Mapping[str, Family] = {
    "ceiling": ceiling, "ranked": ranked, "stairs": stairs, "crowd": crowd, "apart": apart, "experts": experts,
}  # fmt: skip
HELD_OUT: Mapping[str, Family] = {"hosted": hosted, "paged": paged}
EVERY: Mapping[str, Family] = {**CHOSEN, **HELD_OUT}

DEPTHS, BRANCHINGS, WIDTHS = tuple(range(1, 8)), (1, 2, 3, 4, 8), (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""SGLang's grid of trees (bench_speculative.py), finer."""
ALL = rooflines.grid(DEPTHS, BRANCHINGS, WIDTHS)


def drawn(count: int, chance: Random) -> tuple[Shape, ...]:
    """So many trees of that grid: the chains, and others by lot."""
    chains = [shape for shape in ALL if shape[1] == 1]
    others = [shape for shape in ALL if shape[1] > 1]
    kept = set(chance.sample(others, count - len(chains)))
    return (*chains, *(shape for shape in others if shape in kept))


def table(
    family: str, shapes: Sequence[Shape], workloads: int = 4, seed: int = 0, told: float | None = 0.0
) -> dict[str, Any]:
    """In the format of tests/support/replay.py. `told`: by how much acceptance lengths are wrong, in ln, by tree and
    workload; None is a server that does not tell them."""
    chance = Random(f"{family} {seed}")
    server = EVERY[family](chance, workloads)
    names = [f"w{i}" for i in range(workloads)]
    baseline = {name: chance.uniform(100, 2000) for name in names}
    trees: list[dict[str, Any]] = []
    for shape, (i, name) in product(shapes, enumerate(names)):
        if i == 0:
            trees.append(dict(zip(("numSteps", "topK", "numDraftTokens"), shape, strict=True)) | {"points": {}})
        length = server.accepted(shape, i)
        speed = baseline[name] * length * server.takes(NONE, i) / server.takes(shape, i)
        trees[-1]["points"][name] = {
            "throughput": speed * math.exp(chance.gauss(0, server.own)),
            "acceptLength": None
            if told is None
            else min(shape[0] + 1.0, max(1.0, length * math.exp(chance.gauss(0, told)))),
        }
    return {"baseline": baseline, "trees": trees}
