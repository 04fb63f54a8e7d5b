"""A sample of cases on a real API server: `make faults-real`.

An etcd and an API server of its own on free ports of loopback. Prints each case as it ends, and writes the table of
docs/reports/faults.md. Exits with 1 if one case was not played, or has not ended as undisturbed.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.fault.real.faults import OF_WATCHES, OF_WRITES
from tests.fault.real.play import Draw, Outcome, Undisturbed, drawn, stage
from tests.fault.real.stories import STORIES
from tests.support import apiserver
from tests.support.apiserver import Running
from tests.support.tables import section

CRDS = Path(__file__).parents[3] / "crds"
WIDE = "--service-cluster-ip-range=10.0.0.0/16"
"""The last of two options counts: each case has a Service, and a Service an address."""
SLOW_FAULTS = ("silence", "time-out")


def start(directory: Path) -> Running:
    server = apiserver.start(directory, options=(WIDE,))
    server.install(CRDS)
    return server


def slow_first(draw: Draw) -> int:
    return -(draw.fault.name in SLOW_FAULTS)


async def play(
    server: Running, seed: int, cases: int, stories: Sequence[str], minutes: float
) -> tuple[dict[str, Undisturbed], list[Outcome]]:
    """So many cases of each story, and what has ended of them by then."""
    outcomes: list[Outcome] = []
    async with stage(server) as here:

        async def one(story: str) -> None:
            await here.learn([story])
            draws = drawn(seed, story, here.known[story], cases)
            async for outcome in here.try_all(sorted(draws, key=slow_first)):
                outcomes.append(outcome)
                print("BAD" if outcome.wrong else "ok ", outcome, flush=True)

        with suppress(TimeoutError):
            async with asyncio.timeout(60 * minutes):
                await asyncio.gather(*map(one, stories))
        return here.known, outcomes


def report(seed: int, known: dict[str, Undisturbed], outcomes: Sequence[Outcome], cost: str, drawn: int) -> str:
    hit = [one for one in outcomes if one.hit]

    def of_fault(name: str) -> list[Outcome]:
        return [one for one in hit if one.draw.fault.name == name]

    def total(cases: Sequence[Outcome]) -> str:
        return share(sum(not one.wrong for one in cases), len(cases))

    faults = [fault.name for fault in (*OF_WRITES, *OF_WATCHES)]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    lines = [
        "## On a real API server",
        "",
        "`make faults-real`: each story has a namespace and an operator, behind a proxy",
        "(`tests/fault/real/proxy.py`) that does one thing wrong at a write or at an event of a watch; the",
        "seed draws where. Converged: the same objects as undisturbed except times, uids and nodes; each made",
        "and removed as often; the same verdicts; no other Events, except that a status was refused; no",
        "promise of `tests/fault/oracle.py` broken at any moment; no server lent at the end; no traceback.",
        "",
        f"Commit {commit.stdout.strip()}, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors, seed {seed}.",
        f"**{len(hit)} cases, {sum(not one.wrong for one in hit)} converged**; {len(outcomes) - len(hit)} more ended"
        " before",
        f"the fault's place came. {cost}",
        *([f"{drawn - len(outcomes)} of {drawn} drawn were not played: the time was over."] * (drawn > len(outcomes))),
        "",
        f"By fault: {', '.join(f'{fault} {total(of_fault(fault))}' for fault in faults)}.",
        "",
        "| story | writes, events | cases, all converged where one number stands |",
        "|---|---|---|",
    ]
    for story, found in known.items():
        of_story = [one for one in hit if one.draw.story == story]
        lines.append(f"| {story} | {found.writes}, {found.events} | {total(of_story)} |")
    lines += ["", *(f"* not converged: {line}" for one in hit if one.wrong for line in str(one).splitlines()[:3])]
    return "\n".join(lines).rstrip() + "\n"


def share(good: int, run: int) -> str:
    return f"{good}" if good == run else f"{good}/{run}"


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--cases", type=int, default=19, help="of each story")
    parser.add_argument("--minutes", type=float, default=60, help="what has not ended by then does not count")
    parser.add_argument("--stories", nargs="*", default=list(STORIES))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-faults-", dir="/var/tmp") as place:
        server = start(Path(place))
        began = time.monotonic()
        try:
            known, outcomes = asyncio.run(play(server, given.seed, given.cases, given.stories, given.minutes))
            of_servers = sum(processor_seconds(process.pid) for process in server.processes)
        finally:
            server.stop()
    ours = resource.getrusage(resource.RUSAGE_SELF)
    cost = (
        f"{(time.monotonic() - began) / 60:.0f} minutes; {ours.ru_utime + ours.ru_stime:.0f} s of the processor in"
        f" operators, proxy and nature, {of_servers:.0f} s in etcd and API server."
    )
    asked = given.cases * len(given.stories)
    text = report(given.seed, known, outcomes, cost, asked)
    print(text)
    if given.write:
        given.write.write_text(section(given.write.read_text(), text))
    return 1 if len(outcomes) < asked or any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
