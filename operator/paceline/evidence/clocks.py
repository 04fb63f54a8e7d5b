"""What the driver said of the GPUs right before and right after each load: clocks, power, temperature, and what held
the clocks down meanwhile.

It explains and decides nothing: an arm that draws so much power that its GPUs slow down does so in service, too. What
nvidia-smi does not know ("[N/A]") is None, and a node without it has no readings at all.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

REASONS = {
    0x4: "SwPowerCap",
    0x8: "HwSlowdown",
    0x10: "SyncBoost",
    0x20: "SwThermalSlowdown",
    0x40: "HwThermalSlowdown",
    0x80: "HwPowerBrakeSlowdown",
}
"""NVML's nvmlClocksEventReason… (nvml.h; docs.nvidia.com/deploy/nvml-api, "NvmlClocksEventReasons"), by their bits.
GpuIdle (0x1) and the clocks that somebody has set (0x2 of applications, 0x100 of displays) hold nothing back that was
meant to run."""
COUNTERS = {
    "clocks_event_reasons_counters.sw_power_cap": 0x4,
    "clocks_event_reasons_counters.sync_boost": 0x10,
    "clocks_event_reasons_counters.sw_thermal_slowdown": 0x20,
    "clocks_event_reasons_counters.hw_thermal_slowdown": 0x40,
    "clocks_event_reasons_counters.hw_power_brake_slowdown": 0x80,
}
"""Microseconds since the driver was loaded, and the reason that they count; drivers before about 570 have none."""
IDLE = 0x1
ACTIVE = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""What holds now; the second is the name in drivers before 535."""
LEAST = 0.01
"""Of a load: what held for less is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One GPU at one time. Clocks of its SMs in MHz, power in W, temperature in °C; `reasons` are NVML's bits that hold
    now, `held` microseconds by such a bit."""

    uuid: str = ""
    sm_mhz: int | None = None
    most_sm_mhz: int | None = None
    watts: float | None = None
    limit_watts: int | None = None
    celsius: int | None = None
    reasons: int = 0
    held: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """What held clocks down during one load, as NVML's bits; `percent` of its time at most, over GPUs and reasons. None
    where the driver does not count: then `reasons` are only of the two moments before and after."""

    workload: str
    reasons: int
    percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Of one replicate, over all of its loads and GPUs: the slowest SM clock of those that were not idle (yet, or
    already), and the fastest there could be; the lowest power limit; the highest temperature."""

    sm_mhz: int | None = None
    most_sm_mhz: int | None = None
    limit_watts: int | None = None
    celsius: int | None = None
    throttled: tuple[Throttled, ...] = ()


def read(text: str) -> tuple[Reading, ...]:
    """What the wrapper wrote: the names of the fields, then a line a GPU. Nothing of a line that is no such line."""
    names, *lines = csv.reader(text.splitlines(), skipinitialspace=True) if text.strip() else [[]]
    return tuple(_reading(dict(zip(names, line, strict=True))) for line in lines if len(line) == len(names))


def _reading(said: Mapping[str, str]) -> Reading:
    return Reading(
        uuid=said.get("uuid", ""),
        sm_mhz=_whole(said.get("clocks.sm")),
        most_sm_mhz=_whole(said.get("clocks.max.sm")),
        watts=_number(said.get("power.draw")),
        limit_watts=_whole(said.get("power.limit")),
        celsius=_whole(said.get("temperature.gpu")),
        reasons=next((int(said[name], 16) for name in ACTIVE if said.get(name, "").startswith("0x")), 0),
        held={bit: held for name, bit in COUNTERS.items() if (held := _whole(said.get(name))) is not None},
    )


def _number(text: str | None) -> float | None:
    """Its unit, where an older nvidia-smi writes one all the same, is left out."""
    try:
        return float((text or "").split()[0])
    except (ValueError, IndexError):
        return None


def _whole(text: str | None) -> int | None:
    found = _number(text)
    return None if found is None else round(found)


def seen(
    so_far: Clocks | None, workload: str, before: Sequence[Reading], after: Sequence[Reading], seconds: float
) -> Clocks | None:
    """With what was read around a load that took so many seconds; None as long as nothing was."""
    if not (before or after):
        return so_far
    known, both = so_far or Clocks(), (*before, *after)
    throttled = _throttled(workload, before, after, seconds)
    awake = (None if one.reasons & IDLE else one.sm_mhz for one in both)
    return replace(
        known,
        sm_mhz=min(_known(known.sm_mhz, *awake), default=None),
        most_sm_mhz=max(_known(known.most_sm_mhz, *(one.most_sm_mhz for one in both)), default=None),
        limit_watts=min(_known(known.limit_watts, *(one.limit_watts for one in both)), default=None),
        celsius=max(_known(known.celsius, *(one.celsius for one in both)), default=None),
        throttled=(*known.throttled, *throttled),
    )


def _known(*values: int | None) -> list[int]:
    return [value for value in values if value is not None]


def _throttled(
    workload: str, before: Sequence[Reading], after: Sequence[Reading], seconds: float
) -> Iterator[Throttled]:
    """Nothing if nothing held the clocks down."""
    moments = 0
    for one in (*before, *after):
        moments |= one.reasons
    shares: dict[int, float] = {}
    for first, last in zip(before, after, strict=False):
        for bit in first.held.keys() & last.held.keys():
            share = (last.held[bit] - first.held[bit]) / (seconds * 1e6) if seconds else 0.0
            shares[bit] = max(shares.get(bit, 0.0), min(1.0, share))
    # What is counted is known for the whole load; what held in one of two moments only tells more where nothing counts.
    reasons = sum(bit for bit in REASONS if (shares[bit] >= LEAST if bit in shares else moments & bit))
    if reasons:
        largest = max((share for bit, share in shares.items() if bit & reasons), default=None)
        percent = None if largest is None else round(100 * largest)
        yield Throttled(workload=workload, reasons=reasons, percent=percent)


def names(reasons: int) -> list[str]:
    """As NVML calls them."""
    return [name for bit, name in REASONS.items() if reasons & bit]


def to_columns(found: Sequence[Clocks | None]) -> list[Any]:
    """A row an arm, as its message carries it; nothing at all where no arm has any."""
    if not any(found):
        return []
    return [
        one
        and [
            *(one.sm_mhz, one.most_sm_mhz, one.limit_watts, one.celsius),
            [[held.workload, held.reasons, held.percent] for held in one.throttled],
        ]
        for one in found
    ]


def from_columns(rows: Sequence[Any], arms: int) -> list[Clocks | None]:
    """Raises ValueError and TypeError for what `to_columns` does not write."""
    return [row and _clocks(*row) for row in rows] if rows else [None] * arms


def _clocks(
    sm_mhz: int | None, most_sm_mhz: int | None, limit_watts: int | None, celsius: int | None, throttled: Sequence[Any]
) -> Clocks:
    return Clocks(
        sm_mhz=sm_mhz,
        most_sm_mhz=most_sm_mhz,
        limit_watts=limit_watts,
        celsius=celsius,
        throttled=tuple(Throttled(workload=name, reasons=bits, percent=share) for name, bits, share in throttled),
    )


MOST_TOLD = 6
"""Loads that a note names; status has all."""


def note(found: Iterable[tuple[str, Clocks | None]]) -> list[str]:
    """One sentence of all arms' throttled loads; none if there are none."""
    loads = [(arm, one) for arm, clocks in found if clocks for one in clocks.throttled]
    if not loads:
        return []
    told = [
        f"{' and '.join(names(one.reasons))} on {one.workload} of {arm}"
        + ("" if one.percent is None else f" ({one.percent} % of the time)")
        for arm, one in sorted(loads, key=lambda load: -(load[1].percent or 0))[:MOST_TOLD]
    ]
    more = f", and {len(loads) - MOST_TOLD} loads more" if len(loads) > MOST_TOLD else ""
    return [f"throttled: {', '.join(told)}{more}"]
