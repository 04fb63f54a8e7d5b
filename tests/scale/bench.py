"""What Paceline costs, and how long it takes, with 100, 1,000 and 5,000 deployments: `make bench-scale`.

One pool, one candidate, four datasets at concurrency 1; all in one namespace, which is the worst case for whoever looks
through a namespace. Figures of wall time depend on the machine and on who else uses it; seconds of the processor much
less. Prints one JSON object for each size, and writes the table of docs/performance.md.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from tests.scale import machine, table
from tests.scale.machine import Cost
from tests.scale.world import Bench, Operator, world

Figures = dict[str, float]


async def measure(bench: Bench, size: int, options: argparse.Namespace) -> Figures:
    names = [f"served-{number}" for number in range(size)]
    figures: Figures = {"deployments": size}
    with ExitStack() as operators:
        operator = operators.enter_context(bench.operator("first"))
        await bench.until("the operator leads", bench.leads, 60)
        figures |= await creation(bench, operator, names, options)
        figures |= await promotions(bench, operator, names[:1], "alone")
        figures |= await promotions(bench, operator, names[1 : 1 + options.promoted], "together")
        figures |= await idle(bench, operator, options.idle, "idle")
        figures |= await changes(bench, operator, names[-min(size, 800) :], options)
        figures |= dict(zip(("resident_mib", "peak_mib"), machine.memory(operator.process.pid), strict=True))
        figures |= await hand_over(bench, operator, operators.enter_context(bench.operator("second")), size)
    with bench.operator("third") as operator:
        figures |= await start(bench, operator, size, "start")
        rest = names[1 + options.promoted : options.runs]
        if rest:
            figures |= await promotions(bench, operator, rest, "all")
            figures["finished"] = 1 + options.promoted + len(rest)
    if rest:
        with bench.operator("fourth") as operator:
            figures |= await start(bench, operator, size, "finished_start")
            figures |= await idle(bench, operator, options.idle, "finished_idle")
    return figures


async def creation(bench: Bench, operator: Operator, names: list[str], options: argparse.Namespace) -> Figures:
    say(f"create {len(names)}")
    await bench.quiet(operator)
    batch, rest = names[: options.created], names[options.created :]
    operator.meter.begin()
    await bench.each(batch, bench.create)
    await bench.serve(batch, "baseline", 1200)
    spent = operator.meter.cost()
    if rest:
        await bench.each(rest, bench.create)
        await bench.serve(rest, "baseline", 3600)
    return {
        "create_writes": spent.writes / len(batch),
        "create_reads": spent.reads / len(batch),
        "create_seconds": spent.seconds,
        "create_load": machine.load(),
        **processors("create", spent, len(batch)),
    }


def processors(what: str, spent: Cost, number: int) -> Figures:
    """Milliseconds of the processor for each of `number`, of the operator and of all others."""
    others = {f"{what}_{name}_cpu_ms": 1000 * cpu / number for name, cpu in spent.others.items()}
    return {f"{what}_cpu_ms": 1000 * spent.cpu / number, **others}


async def promotions(bench: Bench, operator: Operator, names: list[str], how: str) -> Figures:
    await bench.quiet(operator)
    say(f"{len(names)} promotions")
    passes = operator.passes()
    operator.meter.begin()
    log = bench.directory / "nature.jsonl"
    offset = log.stat().st_size
    began = time.monotonic()
    await bench.each(names, lambda name: bench.set(name, suspend=False))
    await bench.serve(names, "wide", 3600)
    seconds = time.monotonic() - began
    await asyncio.sleep(2)  # what is written afterwards counts too
    spent = operator.meter.cost()
    waits = gaps([json.loads(line) for line in log.read_bytes()[offset:].splitlines()])
    return {
        f"{how}_writes": spent.writes / len(names),
        f"{how}_reads": spent.reads / len(names),
        f"{how}_passes": (operator.passes() - passes) / len(names),
        f"{how}_seconds": seconds,
        f"{how}_gap_p50": median(waits),
        f"{how}_gap_max": max(waits),
        f"{how}_load": machine.load(),
        **processors(how, spent, len(names)),
    }


def gaps(lines: list[tuple[str, str, float]]) -> list[float]:
    """Seconds from the end of a round to the beginning of the run's next."""
    of_run: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run, what, at in lines:
        of_run[run].append((at, what))
    return [
        later - earlier
        for each in of_run.values()
        for (earlier, was), (later, now) in pairwise(sorted(each))
        if (was, now) == ("ended", "made")
    ]


async def idle(bench: Bench, operator: Operator, seconds: float, how: str) -> Figures:
    say("idle")
    await bench.quiet(operator)
    operator.meter.begin()
    await asyncio.sleep(seconds)
    spent = operator.meter.cost()
    return {
        f"{how}_writes": spent.writes,
        f"{how}_reads": spent.reads,
        f"{how}_mcores": 1000 * spent.cpu / spent.seconds,
    }


async def changes(bench: Bench, operator: Operator, names: list[str], options: argparse.Namespace) -> Figures:
    """Another number of renderings to keep, where there are fewer: the status names the generation, and no more
    happens."""
    names = [name for name in names if bench.serving(name) == "baseline"]
    await bench.quiet(operator)
    say(f"{options.rate} changes a second")
    operator.meter.begin()
    asked: list[tuple[str, int, float]] = []

    async def change(number: int) -> None:
        name = names[number % len(names)]
        async with bench.turns:
            written = await bench.set(name, promotion={"revisionHistoryLimit": 4 + number // len(names) % 40})
        asked.append((name, written["metadata"]["generation"], time.monotonic()))

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(int(options.rate * options.changes)):
            group.create_task(change(number))
            await asyncio.sleep(max(0.0, began + (number + 1) / options.rate - time.monotonic()))

    def observed(name: str, generation: int) -> float | None:
        return next((at for seen, at in bench.observed[name] if seen >= generation), None)

    await bench.until("all observed", lambda: all(observed(name, g) for name, g, _ in asked), 300, 0.2)
    spent = operator.meter.cost()
    waits = [max(0.0, (observed(name, generation) or 0.0) - at) for name, generation, at in asked]
    percent = quantiles(waits, n=100)
    return {
        "change_p50": percent[49],
        "change_p99": percent[98],
        "change_writes": spent.writes / len(asked),
        "change_load": machine.load(),
        **processors("change", spent, len(asked)),
    }


async def hand_over(bench: Bench, operator: Operator, standby: Operator, size: int) -> Figures:
    """From the signal to the first pass of who stood by, and until it has looked at all."""
    await bench.until("somebody stands by", lambda: machine.at_rest(standby.process.pid), 120)
    await bench.quiet(operator)
    say("hand over")
    operator.process.send_signal(signal.SIGTERM)
    acts = await bench.until("the next acts", lambda: standby.passes() > 0, 120, 0.02)
    rest = await bench.until("the next has seen all", lambda: standby.passes() >= size, 900)
    return {"handover_seconds": acts, "handover_all_seconds": rest, "handover_load": machine.load()}


async def start(bench: Bench, operator: Operator, size: int, how: str) -> Figures:
    """Of a process that has just been started, until it has looked at all."""
    say("start")
    operator.meter.from_the_beginning()
    await bench.until("all were looked at", lambda: operator.passes() >= size, 900)
    seconds = time.monotonic() - operator.spawned
    spent = operator.meter.cost()
    resident, peak = machine.memory(operator.process.pid)
    return {
        f"{how}_seconds": seconds,
        f"{how}_cpu": spent.cpu,
        f"{how}_reads": spent.reads,
        f"{how}_writes": spent.writes,
        f"{how}_load": machine.load(),
        f"{how}_mib": resident,
        f"{how}_peak_mib": peak,
    }


async def one_size(size: int, options: argparse.Namespace) -> Figures:
    async with world(dict(pair.split("=", 1) for pair in options.env), options.keep) as bench:
        return await measure(bench, size, options)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}, load {machine.load():.1f}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 5000])
    parser.add_argument("--created", type=int, default=200, help="deployments of which the creation is measured")
    parser.add_argument("--promoted", type=int, default=20, help="promotions at once")
    parser.add_argument("--runs", type=int, default=1000, help="deployments that have a finished run in the end")
    parser.add_argument("--idle", type=float, default=60, help="seconds")
    parser.add_argument("--rate", type=float, default=20, help="changes a second")
    parser.add_argument("--changes", type=float, default=30, help="seconds")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for the operator")
    parser.add_argument("--keep", help="directory for the logs")
    parser.add_argument("--json", type=Path, help="file of figures: those of other sizes in it are kept")
    parser.add_argument("--write", action="store_true", help="write the table of docs/performance.md")
    options = parser.parse_args()
    known = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    for size in options.sizes:
        figures = asyncio.run(one_size(size, options))
        known = sorted(
            [*(each for each in known if each["deployments"] != size), figures], key=lambda each: each["deployments"]
        )
        print(json.dumps({name: round(value, 3) for name, value in figures.items()}), flush=True)
        if options.json:  # at once: the next size may take an hour, or fail
            options.json.write_text(json.dumps(known, indent=1) + "\n")
        if options.write:
            table.write(known)
    print(table.markdown(known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
