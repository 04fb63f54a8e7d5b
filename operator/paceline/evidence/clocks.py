"""The driver's readings of the GPUs right before and after each load: clocks, power, temperature, what throttled the
clocks, and the counter of energy (`energy`).

The clocks explain a result and decide nothing: an arm that draws so much power that its GPUs slow down does so in
service too. A value that nvidia-smi does not know ("[N/A]") is None; a node without nvidia-smi has no readings.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

_REASONS = {
    0x4: "SwPowerCap",
    0x8: "HwSlowdown",
    0x10: "SyncBoost",
    0x20: "SwThermalSlowdown",
    0x40: "HwThermalSlowdown",
    0x80: "HwPowerBrakeSlowdown",
}
"""NVML's nvmlClocksEventReason… (nvml.h; docs.nvidia.com/deploy/nvml-api, "NvmlClocksEventReasons"), by their bits.
GpuIdle (0x1) and clocks set on purpose (0x2 for applications, 0x100 for displays) do not count as throttling."""
_COUNTERS = {
    "clocks_event_reasons_counters.sw_power_cap": 0x4,
    "clocks_event_reasons_counters.sync_boost": 0x10,
    "clocks_event_reasons_counters.sw_thermal_slowdown": 0x20,
    "clocks_event_reasons_counters.hw_thermal_slowdown": 0x40,
    "clocks_event_reasons_counters.hw_power_brake_slowdown": 0x80,
}
"""Counter of microseconds since the driver was loaded → its reason; drivers before about 570 have none."""
_IDLE = 0x1
ACTIVE = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""Field with the current reasons; drivers before 535 use the second name."""
LEAST = 0.01
"""Throttling for a smaller fraction of a load is not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One GPU at one time. Clocks of its SMs in MHz, power in W, temperature in °C; `reasons`: NVML's bits; `held`:
    bit → microseconds so far."""

    uuid: str = ""
    sm_mhz: int | None = None
    most_sm_mhz: int | None = None
    watts: float | None = None
    limit_watts: int | None = None
    celsius: int | None = None
    reasons: int = 0
    held: Mapping[int, int] = field(default_factory=dict)
    millijoules: int | None = None
    """Energy since the driver was loaded."""
    shared: str = ""
    """Why that is not the arm's own energy: a key of `energy.SHARED`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """Why clocks were throttled during one load, as NVML's bits. `percent`: share of the load's time, for the GPU and
    the reason with the largest share. None if the driver has no counters; `reasons` are then those read right before
    and after the load."""

    workload: str
    reasons: int
    percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Summary of a replicate's readings over all its loads and GPUs: slowest SM clock of a GPU that was not idle, and
    the maximum clock; lowest power limit; highest temperature."""

    sm_mhz: int | None = None
    most_sm_mhz: int | None = None
    limit_watts: int | None = None
    celsius: int | None = None
    throttled: tuple[Throttled, ...] = ()


def read_clocks(text: str) -> tuple[Reading, ...]:
    """Parse the wrapper's file: a line of field names, then one line per GPU; after an empty line the same for the
    energy. Malformed lines are skipped."""
    gpus, _, energy = text.partition("\n\n")
    counted = {row.get("uuid"): row for row in _rows(energy)}
    return tuple(_reading({**counted.get(row.get("uuid"), {}), **row}) for row in _rows(gpus))


def _rows(table: str) -> Iterator[Mapping[str, str]]:
    names, *lines = csv.reader(table.splitlines(), skipinitialspace=True) if table.strip() else [[]]
    return (dict(zip(names, line, strict=True)) for line in lines if len(line) == len(names))


def _reading(fields: Mapping[str, str]) -> Reading:
    return Reading(
        uuid=fields.get("uuid", ""),
        sm_mhz=_whole(fields.get("clocks.sm")),
        most_sm_mhz=_whole(fields.get("clocks.max.sm")),
        watts=_number(fields.get("power.draw")),
        limit_watts=_whole(fields.get("power.limit")),
        celsius=_whole(fields.get("temperature.gpu")),
        reasons=next((_bits(fields[name]) for name in ACTIVE if fields.get(name, "").startswith("0x")), 0),
        held={bit: held for name, bit in _COUNTERS.items() if (held := _whole(fields.get(name))) is not None},
        millijoules=_whole(fields.get("energy")),
        shared=fields.get("shared", ""),
    )


def _number(text: str | None) -> float | None:
    """The number without its unit, which older versions of nvidia-smi print even if told not to."""
    try:
        number = float((text or "").split()[0])
    except (ValueError, IndexError):
        return None
    return number if math.isfinite(number) else None


def _bits(text: str) -> int:
    """NVML's 64 bits as a number; 0 for any other text, since a server may have written the file."""
    try:
        bits = int(text, 16)
    except ValueError:
        return 0
    return bits if bits < 1 << 64 else 0


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else round(number)


def clocks_around(
    so_far: Clocks | None, workload: str, before: Sequence[Reading], after: Sequence[Reading], seconds: float
) -> Clocks | None:
    """`so_far` combined with the readings around a load that lasted `seconds`; None if there are no readings so far."""
    if not (before or after):
        return so_far
    clocks, readings = so_far or Clocks(), (*before, *after)
    throttled = _throttled(workload, before, after, seconds)
    busy = (None if reading.reasons & _IDLE else reading.sm_mhz for reading in readings)
    return replace(
        clocks,
        sm_mhz=min(_not_none(clocks.sm_mhz, *busy), default=None),
        most_sm_mhz=max(_not_none(clocks.most_sm_mhz, *(r.most_sm_mhz for r in readings)), default=None),
        limit_watts=min(_not_none(clocks.limit_watts, *(r.limit_watts for r in readings)), default=None),
        celsius=max(_not_none(clocks.celsius, *(r.celsius for r in readings)), default=None),
        throttled=(*clocks.throttled, *throttled),
    )


def _not_none(*values: int | None) -> list[int]:
    return [value for value in values if value is not None]


def _throttled(
    workload: str, before: Sequence[Reading], after: Sequence[Reading], seconds: float
) -> Iterator[Throttled]:
    """What throttled the clocks during the load: at most one `Throttled`, none if nothing did."""
    moments = 0
    for reading in (*before, *after):
        moments |= reading.reasons
    shares: dict[int, float] = {}
    for first, last in zip(before, after, strict=False):
        for bit in first.held.keys() & last.held.keys():
            share = (last.held[bit] - first.held[bit]) / (seconds * 1e6) if seconds else 0.0
            shares[bit] = max(shares.get(bit, 0.0), min(1.0, share))
    # A counter covers the whole load; the two moments before and after only matter for reasons without a counter.
    reasons = sum(bit for bit in _REASONS if (shares[bit] >= LEAST if bit in shares else moments & bit))
    if reasons:
        largest = max((share for bit, share in shares.items() if bit & reasons), default=None)
        percent = None if largest is None else round(100 * largest)
        yield Throttled(workload=workload, reasons=reasons, percent=percent)


def throttle_names(reasons: int) -> list[str]:
    """NVML's names of these reasons."""
    return [name for bit, name in _REASONS.items() if reasons & bit]


MOST_NAMED = 6
"""Maximum number of loads named in a note; status lists all."""


def throttle_note(clocks_by_arm: Iterable[tuple[str, Clocks | None]]) -> list[str]:
    """One sentence about all throttled loads; empty if there are none."""
    loads = [(arm, load) for arm, clocks in clocks_by_arm if clocks for load in clocks.throttled]
    if not loads:
        return []
    texts = [
        f"{' and '.join(throttle_names(load.reasons))} on {load.workload} of {arm}"
        + ("" if load.percent is None else f" ({load.percent} % of the time)")
        for arm, load in sorted(loads, key=lambda pair: -(pair[1].percent or 0))[:MOST_NAMED]
    ]
    more = f", and {len(loads) - MOST_NAMED} loads more" if len(loads) > MOST_NAMED else ""
    return [f"throttled: {', '.join(texts)}{more}"]
