"""Of what an interval is: of the traffic that a set stands for, or of the prompts of that set alone.

Every round is sent others (`pods/round/choose.py`), so what prompts differ in is among what rounds differ in, and an
interval over rounds has it. Where a set has too few for that, prompts come again, and what they all have in common is
in the mean and in no interval.
"""

from collections.abc import Iterable, Mapping, Sequence

from paceline.core import Workload


def repeated(workload: Workload, round: int, size: int) -> bool:
    """Whether prompts of a set of so many come again in this round, counted from 0: within it, or after others."""
    return (round + 1) * workload.dataset.requests > size


def repeated_note(workloads: Iterable[Workload], round: int, sizes: Mapping[str, int]) -> list[str]:
    """For a round's notes: at most one. `sizes`: dataset → prompts."""
    short = _short(workloads, round, sizes)
    return [f"prompts repeat on {_named(short)}: the intervals hold for these prompts only"] * bool(short)


def of_these_prompts(workloads: Sequence[Workload], rounds: Iterable[tuple[int, Mapping[str, int]]]) -> str:
    """For a verdict on these rounds, by number, each with its datasets' prompts; "" if no prompt was sent twice, or
    nobody says how many there were."""
    told = list(rounds)
    short: dict[str, int] = {}
    for workload in workloads:
        for round, sizes in told:
            short |= _short((workload,), round, sizes)
    return f"the intervals hold for these prompts only: {_named(short)}" if short else ""


def _short(workloads: Iterable[Workload], round: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Workload → prompts of its dataset, of those whose prompts come again."""
    known = [(one, sizes[one.dataset.name]) for one in workloads if one.dataset.name in sizes]
    return {one.name: size for one, size in known if repeated(one, round, size)}


def _named(short: Mapping[str, int]) -> str:
    """`the 512 of code@32 and swe@32, the 100 of mine@32`."""
    sizes = dict.fromkeys(short.values())
    return ", ".join(f"the {size} of {' and '.join(n for n, s in short.items() if s == size)}" for size in sizes)
