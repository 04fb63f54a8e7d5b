"""The energy of a load: what NVML's counters of the arm's GPUs grew by between the reading before it and the one after.

It is the arm's only if nobody else uses the GPUs. Where that is not so, or not known, there is no energy, and a
sentence says why: a part of it, or 0, would be a wrong number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.evidence.clocks import Reading

SHARED = {
    "MIG": "is divided (MIG)",
    "MPS": "is shared by MPS",
    "processes": "runs processes that are not the server's",
    "memory": "was in use before the server",
}
"""What the wrapper's program (`render/energy.py`) says of a shared GPU → the sentence's end."""
NOT_READ = "the driver's counter could not be read (it needs python3 in the engine's image)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules of a load, or why they are unknown."""

    joules: float | None = None
    unknown: str = ""


def energy_between(idle: Sequence[Reading], before: Sequence[Reading], after: Sequence[Reading], gpus: int) -> Energy:
    """The energy of a load on this many GPUs of the arm's own (0: they are shared). `idle`: read before the server."""
    if not gpus:
        return Energy(unknown="other pods share the GPUs (accelerator.product or resourceName)")
    for one in (*idle, *before, *after):
        if one.shared:
            return Energy(unknown=f"{one.uuid} {SHARED.get(one.shared, 'is shared')}")
    moments = [{one.uuid: one.millijoules for one in readings} for readings in (idle, before, after)]
    if not all(moment and None not in moment.values() for moment in moments):
        return Energy(unknown=NOT_READ)
    first, begin, end = moments
    if not len(first) == len(begin) == len(end) == gpus or not first.keys() == begin.keys() == end.keys():
        return Energy(unknown=f"the driver shows {len(end)} GPUs, or other ones than before; the arm has {gpus}")
    grown = [(end[uuid] or 0) - (begin[uuid] or 0) for uuid in end]
    if min(grown) <= 0:
        return Energy(unknown="a counter stood still or began again")
    return Energy(joules=sum(grown) / 1000)
