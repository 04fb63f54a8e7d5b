"""What the time of a run's rounds goes into, and what to change where a part of it is odd."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from paceline.api.round import ReplicateRecord, ReplicateTime, Round, rounds_of
from paceline.core.manifest import Object
from paceline.core.record import finite
from paceline.engines import ENGINES
from paceline.evidence.round_status import last_tries
from paceline.report.facts import read_time
from paceline.report.tables import HtmlTable, TableCell
from paceline.report.text import significant
from paceline.report.time_model import ArmTime, TimeView

OF_A_START = ("imports", "weights", "graphs")
REST = "rest"
"""What is left of a start."""
PART_NAMES = {
    "image": "Image",
    "imports": "Imports",
    "weights": "Weights",
    "graphs": "Graphs",
    REST: "Rest of the start",
    "warm_up": "Warm-up",
    "loads": "Loads",
    "end": "End",
}
"""Part of a server's time, in order → the column's head."""


def time_view(spec: Object, rounds: Sequence[Round], *, emulated: bool) -> TimeView | None:
    """None if no round knows its parts. An emulator's time is nobody's to change, so it gets no advice."""
    ended = [(one, held) for one in last_tries(rounds) if (held := _held(one)) > 0]
    servers = [server for one, _ in ended for server in one.replicates]
    if not any(server.seconds for server in servers):
        return None
    loads = [seconds for server in servers if (seconds := _parts(server).get("loads"))]
    view = TimeView(
        rounds=len(ended),
        round=fmean(held for _, held in ended),
        starting=math.fsum(finite(server.start_seconds) or 0.0 for server in servers) / len(ended),
        loads=math.fsum(loads) / len(ended) if loads else None,
        arms=tuple(_arm(spec, arm["name"], servers) for arm in spec["arms"]),
        shortened=any(note.startswith("fewer requests were sent") for one, _ in ended for note in one.notes),
    )
    return view if emulated else replace(view, advice=tuple(_advice(view)))


def _held(one: Round) -> float:
    if one.held_seconds:
        return one.held_seconds
    began, ended = read_time(one.start_time), read_time(one.completion_time)
    try:
        return (ended - began).total_seconds() if began and ended else 0.0
    except TypeError:  # one of them has a time zone
        return 0.0


def _arm(spec: Object, name: str, servers: Sequence[ReplicateRecord]) -> ArmTime:
    mine = [server for server in servers if server.arm == name]
    known = [_parts(server) for server in mine]
    own = next((arm.get("engine") or {} for arm in spec["arms"] if arm["name"] == name), {})
    engine = ENGINES.get(own.get("type") or spec["engine"].get("type", ""))
    return ArmTime(
        arm=name,
        starts=tuple(seconds for server in mine if (seconds := finite(server.start_seconds))),
        parts={part: tuple(parts[part] for parts in known if part in parts) for part in PART_NAMES},
        fewer_graphs=engine.starts.fewer_graphs if engine and engine.starts else "",
    )


def _parts(server: ReplicateRecord) -> dict[str, float]:
    """Positive parts, and what is left of the start."""
    told = server.seconds or ReplicateTime()
    parts = {
        part: seconds for part in PART_NAMES if part != REST and (seconds := finite(getattr(told, part)) or 0.0) > 0
    }
    rest = (finite(server.start_seconds) or 0.0) - math.fsum(parts.get(part, 0.0) for part in OF_A_START)
    return {**parts, REST: rest} if rest > 0 else parts


# In words.


def time_table(view: TimeView) -> HtmlTable:
    """Mean seconds of each part, and its share of a round."""
    shown = [part for part in PART_NAMES if any(arm.parts[part] for arm in view.arms)]
    rows = (
        (TableCell(text=arm.arm), *(_cell(arm.mean(part), view.round) for part in shown), _cell(_all(arm), view.round))
        for arm in view.arms
        if arm.starts or any(arm.parts.values())
    )
    return HtmlTable(head=("Arm", *(f"{PART_NAMES[part]}, s" for part in shown), "All, s"), words=1, rows=tuple(rows))


def _all(arm: ArmTime) -> float:
    return math.fsum(arm.mean(part) for part in PART_NAMES)


def _cell(seconds: float, whole: float) -> TableCell:
    return TableCell(text=significant(seconds), note=f"{seconds / whole:.0%}") if seconds else TableCell(text="–")


def time_note(view: TimeView) -> str:
    """What the table's numbers are."""
    rest = view.round - math.fsum(map(_all, view.arms))
    other = f"; {rest / view.round:.0%} of it is none of these: counters, other requests, waiting" if rest > 0 else ""
    return (
        f"Means over {view.rounds} round{'s' * (view.rounds != 1)}, and shares of the {view.round:.0f} s that a round "
        f"held its accelerators{other}. Imports, weights and graphs are what a server's own log says."
    )


def time_sentence(view: TimeView) -> str:
    """One sentence: how much of a round servers take to start, and with what; how much they answer."""
    starts = [arm.start for arm in view.arms if arm.start]
    known = {part: [arm.mean(part) for arm in view.arms if arm.parts[part]] for part in OF_A_START}
    each = ", ".join(f"{part} {fmean(seconds):.0f} s" for part, seconds in known.items() if seconds)
    answers = f", measured loads take {view.loads / view.round:.0%}" if view.loads else ""
    return (
        f"Of a round's {view.round:.0f} s servers start for {view.starting / view.round:.0%}"
        f"{f' (each {fmean(starts):.0f} s: {each})' if starts and each else ''}{answers}."
    )


def time_lines(run: Object) -> tuple[str, ...]:
    """Sentences about a run `with_rounds`, for a terminal: none if nothing is odd."""
    rounds = rounds_of(run)
    view = time_view(run["spec"], rounds, emulated=any(one.emulated for one in rounds))
    return (time_sentence(view), *view.advice) if view and view.advice else ()


# Advice.

LONG_IMPORTS = 30.0
"""SGLang 0.5.23 imports itself in 7 s a process on two cores (its log in tests/unit/engines/starts), and a start
imports in two processes, one after the other: more than 30 s are those of a slow disk, or of modules that are compiled
at every start."""
LONG_WEIGHTS = 60.0
"""At 2 GB/s, of one local NVMe disk, 60 s are 120 GB: more than most targets, and a slower volume is worth a look."""
LONG_GRAPHS = 30.0
"""On an H200 60 graphs of three kinds took 5 to 10 s (dev/gpu/h200-2026-11-26)."""
LONG_PULL = 60.0
"""An image that is on the node starts within seconds; tens of gigabytes at 1 GB/s take a minute at most."""
SHORT_LOADS = 0.1
"""Share of a round: twice the requests then make it at most a tenth longer."""


def _longest(view: TimeView, part: str) -> tuple[ArmTime, float]:
    """The arm on which it takes longest, and its mean seconds."""
    worst = max(view.arms, key=lambda arm: arm.mean(part))
    return worst, worst.mean(part)


def _imports(view: TimeView) -> Iterator[str]:
    worst, seconds = _longest(view, "imports")
    if seconds > LONG_IMPORTS:
        yield (
            f"Imports take {seconds:.0f} s on {worst.arm}: engine.image lies on a slow disk, or has no compiled "
            "modules, and every start compiles them anew (add python3 -m compileall to the image)."
        )


def _weights(view: TimeView) -> Iterator[str]:
    worst, seconds = _longest(view, "weights")
    if seconds > max(LONG_WEIGHTS, worst.start / 2):
        yield (
            f"Weights take {seconds:.0f} of the {worst.start:.0f} s of a start on {worst.arm}: the cache volume is "
            "slow (cache.claim.storageClassName, or cache.hostPath on a local disk)."
        )


def _graphs(view: TimeView) -> Iterator[str]:
    worst, seconds = _longest(view, "graphs")
    if seconds > max(LONG_GRAPHS, worst.start / 2):
        yield (
            f"Graphs take {seconds:.0f} of the {worst.start:.0f} s of a start on {worst.arm}: let all arms capture "
            f"fewer shapes by engine.args{f' ({worst.fewer_graphs})' if worst.fewer_graphs else ''}."
        )


def _pulls(view: TimeView) -> Iterator[str]:
    """Only if every round waited: a first pull is nothing odd."""
    waits = {arm.arm: min(arm.parts["image"]) for arm in view.arms if len(arm.parts["image"]) == view.rounds > 1}
    arm, seconds = max(waits.items(), key=lambda item: item[1], default=("", 0.0))
    if seconds > LONG_PULL:
        yield (
            f"Each round waits {seconds:.0f} s or more for the image of {arm}: nodes do not keep it (the kubelet's "
            "imageGCHighThresholdPercent), or its pull policy is Always."
        )


def _loads(view: TimeView) -> Iterator[str]:
    if view.loads and view.loads / view.round < SHORT_LOADS and not view.shortened:
        yield (
            f"Measured loads take {view.loads / view.round:.1%} of a round: twice the requests (datasets[].requests) "
            "make it no more than that longer."
        )


RULES: tuple[Callable[[TimeView], Iterator[str]], ...] = (_imports, _weights, _graphs, _pulls, _loads)


def _advice(view: TimeView) -> Iterator[str]:
    for rule in RULES:
        yield from rule(view)
