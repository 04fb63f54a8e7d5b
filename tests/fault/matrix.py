"""Scenarios × steps × faults: `python -m tests.fault.matrix` runs every case; writes part of docs/reports/faults.md.

    python -m tests.fault.matrix [--every N] [--of FIRST/PARTS] [SCENARIO ...]

A scenario that has been run at this commit is not run again (build/faults keeps what was found), so that a run that
was interrupted goes on; `--of 1/2` and `--of 2/2` share the scenarios between two processes. `--every 3` runs a third
of the cases. What `make test` runs is `test_matrix.py`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.fault.forks import Mishap, Road, Roads
from tests.fault.mishaps import SINGLE, Trace, drawn, lateness, pairs, without
from tests.fault.oracle import broken_promises, differences, ending
from tests.fault.scenarios import SCENARIOS, Scenario
from tests.fault.stories import should, tell_once
from tests.fault.world import World
from tests.support.tables import section

KEPT = Path("build/faults")
REPORT = Path("docs/reports/faults.md")
PAIRS = 24
"""Of each scenario."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What was run of a scenario. `cases` and `seconds` of a whole run; `wrong` says what did not converge."""

    scenario: str
    writes: int
    events: int
    cases: Mapping[str, int]
    """Fault → cases."""
    wrong: Sequence[str] = ()
    seconds: float = 0.0
    every: int = 1

    @property
    def run(self) -> int:
        return sum(self.cases.values())

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True)
class Sample:
    """Of each scenario, one of so many steps."""

    writes: int = 1
    events: int = 1
    pairs: int = PAIRS
    each: int = field(default=1)
    """How many steps each pair begins at."""

    def every(self, mishap: Mishap) -> int:
        return self.events if mishap.when == "heard" else self.writes


ALL = Sample()


def check(scenario: Scenario, traces: Mapping[Mishap, Trace], mishap: Mishap, world: World) -> list[str]:
    trace = traces[mishap]
    found = differences(ending(world.cluster), should(scenario.story), trace.told)
    found = [line for line in found if scenario.either not in line]
    late = lateness(world.acted_at - tell_once(scenario.story).acted_at, trace.late + scenario.late)
    return [*without(found, trace), *late, *broken_promises(world.cluster), *scenario.promised(world)]


def run(name: str, sample: Sample = ALL) -> Tally:
    scenario = SCENARIOS[name]
    of_pairs = pairs(name, sample.pairs)
    traces = {**SINGLE, **of_pairs}
    begun = Counter[Mishap]()

    def chosen(mishap: Mishap, step: int) -> bool:
        if mishap not in of_pairs:
            return drawn(f"{name} {mishap}", step, sample.every(mishap))
        begun[mishap] += 1
        return begun[mishap] % 5 == 1 and begun[mishap] <= 5 * sample.each  # here and there

    before = _processor_seconds()
    roads = Roads(scenario.story, tuple(traces), lambda mishap: partial(check, scenario, traces, mishap), chosen)
    roads.drive()
    return Tally(
        scenario=name,
        writes=roads.writes,
        events=roads.heard,
        cases=counted(roads.roads),
        wrong=[str(road) for road in roads.roads if road.wrong],
        seconds=_processor_seconds() - before,
    )


def counted(roads: Sequence[Road]) -> dict[str, int]:
    return dict(Counter("pairs" if road.mishap.then else str(road.mishap) for road in roads))


def _processor_seconds() -> float:
    """Of this process and its children."""
    return sum(os.times()[:4])


def summary(tallies: Sequence[Tally]) -> str:
    """One line."""
    cases, wrong = sum(one.run for one in tallies), sum(len(one.wrong) for one in tallies)
    faults = {fault for one in tallies for fault in one.cases}
    writes, events = sum(one.writes for one in tallies), sum(one.events for one in tallies)
    converged = "all" if not wrong else f"all but {wrong}"
    return (
        f"faults: {len(tallies)} scenarios x {writes} writes and {events} watch events x {len(faults)} faults: "
        f"{cases} run, {cases - wrong} converged ({converged})"
    )


def table(tallies: Sequence[Tally]) -> list[str]:
    lines = ["| scenario | writes | watch events | cases run | converged |", "|---|---|---|---|---|"]
    for one in tallies:
        share = f" (one of {one.every})" if one.every > 1 else ""
        cells = (one.scenario, one.writes, one.events, f"{one.run}{share}", one.run - len(one.wrong))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def report(tallies: Sequence[Tally], commit: str) -> str:
    missing = [name for name in SCENARIOS if name not in {one.scenario for one in tallies}]
    faults = dict(sum((Counter(one.cases) for one in tallies), Counter()))
    seconds = sum(one.seconds for one in tallies)
    made = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}, {platform.machine()}, {os.cpu_count()} processors"
    lines = [
        "## In memory",
        "",
        f"{made}; {seconds:.0f} processor seconds. Written by `make faults` (`tests/fault/matrix.py`).",
        "",
        summary(tallies) + ".",
        *(["", f"Not run: {', '.join(missing)}."] if missing else []),
        "",
        *table(tallies),
        "",
        "| cases | faults |",
        "|---|---|",
        *(
            f"| {many} each | {', '.join(fault for fault, count in faults.items() if count == many)} |"
            for many in dict.fromkeys(faults.values())
        ),
    ]
    wrong = [line for one in tallies for road in one.wrong for line in (f"{one.scenario}: {road}").splitlines()]
    return "\n".join([*lines, *(["", "Not converged:", "", *(f"    {line}" for line in wrong)] if wrong else []), ""])


def main(arguments: Any) -> int:
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], text=True).strip()
    if changed := subprocess.check_output(["git", "diff", "HEAD", "--", "operator", "tests"]):
        commit += f"-changed-{zlib.crc32(changed):08x}"  # what was kept is of other code
    kept = KEPT / f"{commit}-{arguments.every}"
    kept.mkdir(parents=True, exist_ok=True)
    first, parts = map(int, arguments.of.split("/"))
    for name in (arguments.scenarios or list(SCENARIOS))[first - 1 :: parts]:
        path = kept / f"{name}.json"
        if path.exists():
            continue
        began = time.monotonic()
        tally = run(name, Sample(writes=arguments.every, events=arguments.every))
        path.write_text(json.dumps(asdict(tally) | {"every": arguments.every}, indent=1))
        print(f"{name}: {tally.run} cases, {tally.seconds:.0f} s of processor, {time.monotonic() - began:.0f} s")
        print(*tally.wrong, sep="\n", flush=True)
    tallies = [Tally.read(kept / f"{name}.json") for name in SCENARIOS if (kept / f"{name}.json").exists()]
    REPORT.write_text(section(REPORT.read_text(), report(tallies, commit)))
    print(summary(tallies))
    return 1 if any(one.wrong for one in tallies) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--of", default="1/1")
    sys.exit(main(parser.parse_args()))
