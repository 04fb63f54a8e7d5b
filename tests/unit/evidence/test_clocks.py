"""What the driver said around loads: how it is read, what it comes to, and what a round says of it."""

import pytest
from tests.support.messages import Says

from paceline.core.record import to_status
from paceline.evidence.clocks import (
    MOST_NAMED,
    Clocks,
    Reading,
    Throttled,
    clocks_around,
    read_clocks,
    throttle_note,
)
from paceline.evidence.round_status import clocks_record

FIELDS = "uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu,clocks_event_reasons.active"
COUNTED = ",".join(
    f"clocks_event_reasons_counters.{name}"
    for name in ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
)
POWER, THERMAL = 0x4, 0x40
LOAD = "code@32"


def gpu(mhz: int | None = 1980, reasons: int = 0, celsius: int = 60, **held: int) -> Reading:
    """One of 700 W that can clock at 1980 MHz; `held` are microseconds, by power and by thermal."""
    bits = {"power": POWER, "thermal": THERMAL}
    return Reading(
        sm_mhz=mhz,
        most_sm_mhz=1980,
        limit_watts=700,
        celsius=celsius,
        reasons=reasons,
        held={bits[name]: time for name, time in held.items()},
    )


def test_a_driver_that_counts_is_read() -> None:
    text = f"{FIELDS},{COUNTED}\nGPU-a, 1755, 1980, 698.20, 700.00, 71, 0x0000000000000004, 91403239, 0, 0, 12, 0\n"
    assert read_clocks(text) == (
        Reading(
            uuid="GPU-a",
            sm_mhz=1755,
            most_sm_mhz=1980,
            watts=698.2,
            limit_watts=700,
            celsius=71,
            reasons=0x4,
            held={0x4: 91_403_239, 0x10: 0, 0x20: 0, 0x40: 12, 0x80: 0},
        ),
    )


def test_an_older_driver_has_another_word_for_reasons_and_no_counters() -> None:
    text = f"{FIELDS.replace('event', 'throttle')}\nGPU-a, 1410, 1410, 64.1, 400.00, 35, 0x0000000000000001\n"
    (found,) = read_clocks(text)
    assert (found.sm_mhz, found.reasons, found.held) == (1410, 1, {})


def test_what_the_driver_does_not_know_is_none() -> None:
    """A GB10 has no power limit of its own: its memory and its power are the machine's."""
    (found,) = read_clocks(f"{FIELDS}\nGPU-a, 2418, [N/A], [Not Supported], [N/A], 61, [N/A]\n")
    assert (found.sm_mhz, found.most_sm_mhz, found.limit_watts, found.celsius, found.reasons) == (
        2418,
        None,
        None,
        61,
        0,
    )


@pytest.mark.parametrize("text", ["", "\n", FIELDS, f"{FIELDS}\nUnable to determine the device handle for GPU0000:01"])
def test_of_what_is_no_reading_there_is_none(text: str) -> None:
    assert read_clocks(text) == ()


def test_without_a_driver_nothing_is_said() -> None:
    assert clocks_around(None, LOAD, (), (), 10.0) is None
    assert throttle_note([("wide", None)]) == []


def test_the_slowest_and_the_hottest_of_all_gpus_and_loads_are_kept() -> None:
    first = clocks_around(None, "code@1", (gpu(1980), gpu(1965)), (gpu(1950, celsius=64), gpu(1980)), 10.0)
    assert clocks_around(first, LOAD, (gpu(1980),), (gpu(1755, celsius=71),), 10.0) == Clocks(
        sm_mhz=1755, most_sm_mhz=1980, limit_watts=700, celsius=71
    )


def test_the_clock_of_a_gpu_that_idles_already_is_none() -> None:
    found = clocks_around(None, LOAD, (gpu(345, reasons=0x1),), (gpu(1965), gpu(210, reasons=0x1)), 10.0)
    assert found is not None
    assert found.sm_mhz == 1965


@pytest.mark.parametrize(
    ("before", "after", "throttled"),
    [
        ([gpu(power=5_000_000)], [gpu(power=5_000_000)], ()),
        ([gpu(power=5_000_000)], [gpu(power=9_300_000)], ((POWER, 43),)),
        ([gpu(power=0), gpu(power=0)], [gpu(power=0), gpu(power=2_000_000)], ((POWER, 20),)),
        ([gpu(power=0, thermal=0)], [gpu(power=9_000_000, thermal=300_000)], ((POWER | THERMAL, 90),)),
        ([gpu(power=0)], [gpu(power=90_000)], ()),  # for less than a hundredth
        ([gpu(power=0)], [gpu(power=11_000_000)], ((POWER, 100),)),  # the load and what was around it
        ([gpu(reasons=POWER, power=0)], [gpu(power=0)], ()),  # the warm-up's, as the counter knows
        ([gpu()], [gpu(reasons=POWER)], ((POWER, None),)),  # a driver without counters
        ([gpu(reasons=0x8, power=0)], [gpu(power=0)], ((0x8, None),)),  # what no counter is of
        ([gpu(reasons=0x1)], [gpu(reasons=0x1 | 0x2 | 0x100)], ()),  # idle, and clocks that somebody has set
    ],
)
def test_what_held_clocks_down_during_ten_seconds(
    before: list[Reading], after: list[Reading], throttled: tuple[tuple[int, int | None], ...]
) -> None:
    found = clocks_around(None, LOAD, before, after, 10.0)
    assert found is not None
    assert found.throttled == tuple(Throttled(workload=LOAD, reasons=bits, percent=share) for bits, share in throttled)


HOT = Clocks(
    sm_mhz=1755,
    most_sm_mhz=1980,
    limit_watts=700,
    celsius=71,
    throttled=(
        Throttled(workload="code@1", reasons=POWER, percent=3),
        Throttled(workload=LOAD, reasons=POWER | THERMAL, percent=43),
    ),
)


def test_status_has_it_by_load() -> None:
    assert to_status(clocks_record(HOT)) == {
        "smMHz": 1755,
        "mostSMMHz": 1980,
        "powerLimitWatts": 700,
        "celsius": 71,
        "throttled": [
            {"workload": "code@1", "reasons": ["SwPowerCap"], "percent": 3},
            {"workload": LOAD, "reasons": ["SwPowerCap", "HwThermalSlowdown"], "percent": 43},
        ],
    }
    assert to_status(clocks_record(Clocks(celsius=61))) == {"celsius": 61}


def test_a_throttled_round_says_so_the_worst_first(says: Says) -> None:
    moment = Clocks(throttled=(Throttled(workload="chat@8", reasons=0x20),))
    says(*throttle_note([("baseline", Clocks(celsius=50)), ("wide", HOT), ("narrow", moment)]))


def test_a_note_names_only_so_many() -> None:
    everywhere = Clocks(throttled=tuple(Throttled(workload=f"code@{n}", reasons=POWER, percent=9) for n in range(24)))
    (said,) = throttle_note([("baseline", everywhere), ("wide", everywhere)])
    assert said.count(" on code@") == MOST_NAMED
    assert said.endswith(", and 42 loads more")
