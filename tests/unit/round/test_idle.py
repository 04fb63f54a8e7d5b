"""How much of the time that a round holds accelerators is neither a server's start nor a measurement."""

import time
from pathlib import Path

from tests.unit.round.held import FIVE_MINUTES, MOST_IDLE, Held, finish
from tests.unit.round.pod import begin, workload, write_models
from tests.unit.round.test_round import published_pair

SHORT = tuple(workload(name, 1, 4, 32) for name in ("code", "swe", "terminal", "chat"))
"""A second or less each: what counts here is beside them."""
AN_IMPORT = 1.0
A_START, A_POINT = 6.0, 6.0
"""Seconds at most that each may cost beside itself. An arm of four workloads: 6 + 4 × 6 = 30 s, 9 % of 330 s."""


def round_of(workloads: int, directory: Path, port: int) -> Held:
    directory.mkdir()
    models = write_models(directory)
    began = time.monotonic()
    pod = begin(models, port, published_pair(models, port), *SHORT[:workloads])
    try:
        return finish(pod, began)[0]
    finally:
        pod.end()


def test_a_run_with_five_minute_starts_is_idle_for_a_tenth_at_most(tmp_path: Path, port: int) -> None:
    """Two real rounds whose servers start in a second: idle time does not depend on how long a start takes
    (docs/reports/idle.md has one that took its five minutes)."""
    one, four = (round_of(workloads, tmp_path / str(workloads), port) for workloads in (1, 4))

    # What the round's status says is idle is what was, by a clock outside of it. Its message has whole seconds of the
    # round's beginning and end, and status rounds once more: three halves at most. The clock outside begins before the
    # client's Python has imported what it needs, half a second on this machine.
    for held in (one, four):
        assert abs(held.said - held.idle) <= 1.5 + AN_IMPORT

    # Six points more cost so much more; what is left of the short round are its two starts.
    assert (one.starts, one.points, four.starts, four.points) == (2, 2, 2, 8)
    a_point = (four.idle - one.idle) / (four.points - one.points)
    a_start = (one.idle - one.points * a_point) / one.starts
    assert a_point <= A_POINT
    assert a_start <= A_START

    # With five-minute starts the round would hold two of them, what it measured and what was idle.
    would_hold = 2 * FIVE_MINUTES + four.measuring + four.idle
    assert four.idle <= MOST_IDLE * would_hold, f"{four.idle:.1f} s of {would_hold:.1f} s"
