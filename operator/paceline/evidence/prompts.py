"""Scope of an interval: the traffic that a set of prompts represents, or only the prompts of that set.

Every round gets other prompts (`pods/round/choose.py`), so an interval over rounds includes the variation between
prompts. If a set has too few, prompts repeat; the mean then includes that set's bias, which no interval covers.
"""

from collections.abc import Iterable, Mapping, Sequence

from paceline.core import Workload


def repeated(workload: Workload, round: int, size: int) -> bool:
    """Whether, for a set of `size` prompts, this round (from 0) repeats its own or earlier rounds' prompts."""
    dataset = workload.dataset
    if round < 0:  # a search's round: all rounds of a search send the same prompts
        return dataset.requests > size
    return round * dataset.stride + dataset.requests + dataset.turns - 1 > size


def repeated_note(workloads: Iterable[Workload], round: int, sizes: Mapping[str, int]) -> list[str]:
    """At most one note for a round. `sizes`: dataset → number of prompts."""
    short = _short(workloads, round, sizes)
    return [f"prompts repeat on {_named(short)}: the intervals hold for these prompts only"] * bool(short)


def of_these_prompts(rounds: Iterable[tuple[Sequence[Workload], int, Mapping[str, int]]]) -> str:
    """Text for a verdict on these rounds: (workloads as sent, round number, dataset → number of prompts). "" if no
    prompt was sent twice, or if the numbers of prompts are unknown."""
    short: dict[str, int] = {}
    order: list[str] = []
    for workloads, round, sizes in rounds:
        order += [workload.name for workload in workloads]
        short |= _short(workloads, round, sizes)
    named = {name: short[name] for name in dict.fromkeys(order) if name in short}
    return f"the intervals hold for these prompts only: {_named(named)}" if named else ""


def _short(workloads: Iterable[Workload], round: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Workload → number of prompts of its dataset, for workloads with repeated prompts."""
    with_size = [(load, sizes[load.dataset.name]) for load in workloads if load.dataset.name in sizes]
    return {load.name: size for load, size in with_size if repeated(load, round, size)}


def _named(short: Mapping[str, int]) -> str:
    """`the 512 of code@32 and swe@32, the 100 of mine@32`."""
    sizes = dict.fromkeys(short.values())
    return ", ".join(f"the {size} of {' and '.join(n for n, s in short.items() if s == size)}" for size in sizes)
