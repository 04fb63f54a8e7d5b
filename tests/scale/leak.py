"""Whether what was looked at again and again grows: samples in, sentences out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import linear_regression, median

ENOUGH = 8
"""Samples; of fewer nothing can be said."""
MEMORY = (0.05, 4.0)
"""Resident memory may be larger by this fraction and so many MiB in the last quarter than in the second: an allocator
that has seen its largest turn stays there."""
FILES, THREADS = 3, 2
"""By so many more open files and threads: connections come and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """At the end of a turn, when all is quiet."""

    minutes: float
    """Since the first turn began."""
    resident: float
    """MiB."""
    files: int
    threads: int
    objects: int
    """In the API server, of the operator's kinds."""
    writes: int
    """In a while in which nothing happened, without Events and the Lease."""


def growing(samples: Sequence[Sample]) -> list[str]:
    """A sentence for each thing that leaks; the first quarter is warming up."""
    if len(samples) < ENOUGH:
        return [f"{len(samples)} turns are too few to say anything: at least {ENOUGH}"]

    def quarters(what: Callable[[Sample], float]) -> tuple[float, float]:
        """The medians of the second and the last."""
        one = len(samples) // 4
        return median(map(what, samples[one : 2 * one])), median(map(what, samples[-one:]))

    before, after = quarters(lambda sample: sample.resident)
    found = []
    if after > before * (1 + MEMORY[0]) + MEMORY[1]:
        found.append(f"resident memory grew from {before:.1f} to {after:.1f} MiB")
    for name, most, what in (
        ("open files", FILES, lambda sample: sample.files),
        ("threads", THREADS, lambda sample: sample.threads),
    ):
        before, after = quarters(what)
        if after > before + most:
            found.append(f"{name} grew from {before:g} to {after:g}")
    counts = {sample.objects for sample in samples}
    if len(counts) > 1:
        found.append(f"objects that are left after a turn: {sorted(counts)}, not the same each time")
    if writes := sum(sample.writes for sample in samples):
        found.append(f"{writes} writes while nothing happened")
    return found


def slope(samples: Sequence[Sample]) -> float:
    """MiB an hour, after the first quarter."""
    later = samples[len(samples) // 4 :]
    return 60 * linear_regression([one.minutes for one in later], [one.resident for one in later]).slope


def report(samples: Sequence[Sample], said: Sequence[str], come: int, stay: int) -> str:
    first, last = samples[0], samples[-1]
    hours = last.minutes / 60
    shorter = "" if hours >= 7.9 else "\nIt was not the eight hours of `make soak`, so a slower leak would not show."
    rows = "".join(
        f"| {one.minutes:.0f} | {one.resident:.1f} | {one.files} |\n" for one in samples[:: max(1, len(samples) // 8)]
    )
    return (
        "# Soak\n\n"
        f"Written by `make soak` on {datetime.now(UTC).date()}.\n"
        f"**It ran for {last.minutes:.0f} minutes ({hours:.2f} h).**{shorter}\n\n"
        f"{len(samples)} turns; in each, {come} new deployments are created, promoted, changed and deleted, while"
        f"\n{stay} stay: {come * len(samples)} in all. API server and etcd are real; tests/scale/nature.py"
        "\nsimulates the pods. Sampled after each turn, at rest.\n\n"
        f"* Resident memory {first.resident:.1f} MiB at first, {last.resident:.1f} at the end;"
        f" {slope(samples):+.1f} MiB per hour after the first quarter.\n"
        "* The last 1,024 parsed specs of each kind are kept (operator/paceline/api/convert.py): memory rises until\n"
        "  about 500 deployments were created.\n"
        f"* Open files {first.files} and {last.files}, threads {first.threads} and {last.threads},"
        f" at most {max(one.threads for one in samples)}.\n"
        f"* Objects left after a turn: {', '.join(map(str, sorted({one.objects for one in samples})))}.\n"
        f"* Writes while nothing happened: {sum(one.writes for one in samples)}.\n"
        f"* {'; '.join(said) if said else 'Nothing grows by more than tests/scale/leak.py allows.'}\n\n"
        "| minutes | resident, MiB | open files |\n|---|---|---|\n" + rows
    )
