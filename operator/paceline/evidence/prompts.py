"""Scope of an interval: the traffic that a set of prompts represents, or only the prompts of that set.

Every round gets other prompts (`pods/round/choose.py`), so an interval over rounds includes the variation between
prompts. If a set has too few, prompts repeat; the peculiarity of that set is then in the mean and in no interval.
"""

from collections.abc import Iterable, Mapping, Sequence

from paceline.core import Workload


def repeated(workload: Workload, round: int, size: int) -> bool:
    """Whether a set of `size` prompts repeats some in this round, counted from 0, or earlier rounds' prompts."""
    dataset = workload.dataset
    if round < 0:  # of a search: all of its rounds send the same
        return dataset.requests > size
    return round * (dataset.part or dataset.requests) + dataset.requests > size


def repeated_note(workloads: Iterable[Workload], round: int, sizes: Mapping[str, int]) -> list[str]:
    """For a round's notes: at most one. `sizes`: dataset → number of prompts."""
    short = _short(workloads, round, sizes)
    return [f"prompts repeat on {_named(short)}: the intervals hold for these prompts only"] * bool(short)


def of_these_prompts(rounds: Iterable[tuple[Sequence[Workload], int, Mapping[str, int]]]) -> str:
    """For a verdict on these rounds: (workloads as they were sent, number, dataset → number of prompts). "" if no
    prompt was sent twice, or the numbers of prompts are unknown."""
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
