"""A round's result as a termination message.

A message is `paceline1:` and the base85 of a deflated compact JSON. It is written by column, so that equal neighbours
cost almost nothing, with times as whole microseconds: 48 points fit with their arms, for any number of arms. Numbers
that decide nothing (`SPARE`) are included if there is room; a note says so if there is not. Pods report numbers and
judge nothing; the operator judges, so that evidence can be judged again.
"""

import base64
import dataclasses
import itertools
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paceline.core.text import in_all_texts, printable
from paceline.evidence import clocks as gpu_clocks
from paceline.evidence.arguments import Difference
from paceline.evidence.failures import Failure
from paceline.evidence.outputs import from_columns, to_columns
from paceline.evidence.result import Point, Replicate, RoundResult

PREFIX = "paceline1:"
LONGEST = 4096
"""Bytes the kubelet keeps of a container's termination message (of a longer one: the last)."""
LONGEST_ERRORS = (200, 60, 20)
"""Characters of each error: the first length with which the message fits."""
LARGEST_JSON = 1 << 20
IN_THREE = (
    *("p95_ttft", "p99_ttft", "p95_tpot", "p99_tpot", "p99_itl", "p95_e2e"),
    *("worst_decile", "median_prompt", "best_decile", "slower_prompts"),
)
DIGITS = {"output_throughput": 5, "steady_throughput": 5, "fullness": 2, **dict.fromkeys(IN_THREE, 3), "kept_rate": 3}
DIGITS |= {"request_spread": 3}
OTHER_DIGITS = 4
"""Significant digits of a number with a fraction: far below the noise of a measurement. Whole numbers keep all."""


class AnswerError(ValueError):
    """A message without a result, and why."""


SPARE = frozenset({"output_throughput", "p50_ttft", "p90_ttft", "p99_ttft", "p50_tpot", "p99_tpot", "draft_tokens"})
"""Numbers that decide nothing: left out if not all fit."""
NO_ROOM = (
    "the round's message had no room for throughput over the whole time, medians, 90th and 99th percentiles and draft "
    "tokens per step: they are in its full lines on the cache volume"
)
NO_ROOM_CLOCKS = (
    "the round's message had no room for the GPUs' clocks and the causes of throttling: they are in its full lines on "
    "the cache volume"
)
NO_ROOM_AT = "the round's message had no room for acceptance by position: it is in its full lines on the cache volume"
GOOD = ("good_requests", "good_tokens")
MORE = (
    *GOOD,
    *("mean_input", "p50_input", "p99_input", "p50_output", "p99_output"),
    *("worst_decile", "median_prompt", "best_decile", "slower_prompts"),
    "request_spread",
)
"""Numbers by name: older releases skip them. Those of `GOOD` were asked for, and stay longer."""
NO_ROOM_MORE = (
    "the round's message had no room for lengths of prompts and answers and for speed-ups by prompt: the requests that "
    "they are computed from are in its full lines on the cache volume"
)
NO_ROOM_GOOD = (
    "the round's message had no room for goodput: the requests that it is computed from are in its full lines on the "
    "cache volume"
)
EVERY = tuple(f.name for f in dataclasses.fields(Point) if f.name not in ("workload", "accepted_at", *MORE))
NUMBERS = tuple(name for name in EVERY if name not in SPARE)
"""Numbers of a point that there is always room for, among them all that are judged."""
TIMES = frozenset(name for name in EVERY if name.endswith(("_ttft", "_tpot", "_itl", "_e2e")))
MICROSECONDS = 1_000_000
FORMS = (
    (LONGEST_ERRORS[0], EVERY, MORE, True, True),
    (LONGEST_ERRORS[0], EVERY, MORE, False, True),
    (LONGEST_ERRORS[0], EVERY, GOOD, False, True),
    (LONGEST_ERRORS[0], NUMBERS, GOOD, False, True),
    (LONGEST_ERRORS[0], NUMBERS, (), False, True),
    *((longest, NUMBERS, (), False, False) for longest in LONGEST_ERRORS),
)
"""Characters of an error, numbers of a point, those of `MORE`, whether with positions, whether with clocks: the first
form that fits is sent."""
LONGEST_WORD = 500
"""Characters of a version, a product or an id: the API server refuses a status with a longer one."""
LONGEST_VALUE = 2048
"""Characters of a resolved argument; one that a user may set is never longer (`api.types.Argument`)."""
MOST_GPUS, MOST_POSITIONS = 64, 64
LARGEST, SMALLEST = 1e15, 1e-9
"""Range of a server's number besides 0; one outside was never measured. A status has 32 characters for it."""
LAST_SECOND = 253402300799
"""End of the year 9999."""
MOST_ARMS = 16
"""Arms of a pool: there is always room for their KV capacities, which a limit may name."""
SHORT_SHA = 16
"""Hex digits of the lines' SHA-256 if not all fit."""


def encode(result: RoundResult) -> str:
    """The message: ASCII, at most 4096 bytes. Raises AnswerError if the result does not fit."""
    message = ""
    for form in FORMS:
        message = _message(result, *form)
        if len(message) <= LONGEST:
            return message
    points = sum(len(replicate.points) for replicate in result.replicates)
    raise AnswerError(f"the result of {points} points takes {len(message)} bytes; a message holds {LONGEST}")


def _message(
    result: RoundResult,
    longest_error: int,
    numbers: tuple[str, ...],
    more: tuple[str, ...],
    positions: bool,
    with_clocks: bool,
) -> str:
    points = [point for replicate in result.replicates for point in replicate.points]
    workloads = list(dict.fromkeys(point.workload for point in points))
    keys = list(dict.fromkeys(key for replicate in result.replicates for key in replicate.resolved))
    whole, at = numbers == EVERY, _positions(points)
    while points and all(getattr(point, numbers[-1]) is None for point in points):
        numbers = numbers[:-1]  # of what newer releases have added, only what there is
    clocks = gpu_clocks.to_columns([r.clocks for r in result.replicates])
    arms = [
        (r.arm, _short(r.start_seconds), r.exit_code, r.error[:longest_error], _digest(r, longest_error), len(r.points))
        for r in result.replicates
    ]
    raw = {
        "round": [
            result.round,
            result.try_,
            round(result.started),
            round(result.finished),
            _short(result.overhead_seconds),
            result.lines_sha256[: None if whole else SHORT_SHA],
            result.lines_bytes,
        ],
        "gpus": list(result.gpus),
        "datasets": dict(result.datasets),
        "prompts": [result.prompts.get(name) for name in result.datasets],
        "engine": [result.engine_version, result.emulated, result.gpu_model, result.driver],
        "paceline": result.paceline,
        "notes": [note[:longest_error] for note in result.notes[:4]],
        "keys": keys,
        "arms": list(zip(*arms, strict=True)),
        "resolved": [[[r.resolved[key]] if key in r.resolved else [] for r in result.replicates] for key in keys],
        "workloads": workloads,
        "of": [workloads.index(point.workload) for point in points],
        "whole": whole,
        "kv": [r.kv_tokens if whole or len(arms) <= MOST_ARMS else None for r in result.replicates],
        "clocks": clocks if with_clocks or not clocks else None,
        "outputs": to_columns([r.outputs for r in result.replicates], longest_error),
        "differs": [_few(r.differs, longest_error) for r in result.replicates],
        "points": [[_packed(name, getattr(point, name)) for point in points] for name in numbers],
        "at": at if positions or not at else None,
    }
    measured = [name for name in MORE if any(getattr(point, name) is not None for point in points)]
    if measured:
        raw["more"] = {
            name: [_packed(name, getattr(point, name)) for point in points] if name in more else None
            for name in measured
        }
    if any(replicate.error for replicate in result.replicates):  # bytes are dear, and most rounds have none
        raw["failures"] = [replicate.failure and replicate.failure.name for replicate in result.replicates]
    packed = zlib.compress(json.dumps(raw, separators=(",", ":")).encode(), level=9)
    return PREFIX + base64.b85encode(packed).decode()


def _digest(replicate: Replicate, longest: int) -> str:
    """In the shortest form the name of what differs replaces the digest."""
    return "" if replicate.differs and longest == LONGEST_ERRORS[-1] else replicate.rest_sha256


def _few(differs: tuple[Difference, ...] | None, longest: int) -> list[list[str]] | None:
    """As many as errors of that length leave room for; at least the name of the first."""
    if differs is None:
        return None
    if longest == LONGEST_ERRORS[-1]:
        return [[difference.name, "", ""] for difference in differs[:1]]
    return [[d.name, d.value[:longest], d.baseline[:longest]] for d in differs[: max(1, longest // 50)]]


def _positions(points: Sequence[Point]) -> list[list[float | None]]:
    """One row per point; empty if no point has positions."""
    rows = [[_short(fraction) for fraction in point.accepted_at] for point in points]
    return rows if any(rows) else []


def decode(text: str) -> RoundResult:
    """The result in a termination message. Raises AnswerError with what is wrong with it."""
    text = text.strip()
    if not text:
        raise AnswerError("the message is empty")
    if not text.startswith(PREFIX):
        raise AnswerError(f"the message does not begin with {PREFIX} but with {text[: LONGEST_ERRORS[0]]!r}")
    try:
        packed = base64.b85decode(text.removeprefix(PREFIX))
        inflater = zlib.decompressobj()
        raw = inflater.decompress(packed, LARGEST_JSON)
    except (ValueError, zlib.error) as error:
        raise AnswerError(f"the message is damaged: {error}") from error
    if not inflater.eof:
        raise AnswerError("the message is cut off")
    try:
        return _result(in_all_texts(json.loads(raw), printable))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise AnswerError(f"the message holds no result of this version: {error!r}") from error


def _result(raw: dict[str, Any]) -> RoundResult:
    columns = dict(zip(EVERY if raw["whole"] else NUMBERS, raw["points"], strict=False))
    more = {name: column for name, column in raw.get("more", {}).items() if name in MORE}  # missing from older releases
    columns |= {name: column for name, column in more.items() if column is not None}
    left_out = {name for name, column in more.items() if column is None}
    at = raw.get("at", [])  # missing from older releases; None: no room
    points = iter(
        [_point(raw["workloads"][of], columns, row, at[row] if at else []) for row, of in enumerate(raw["of"])]
    )
    number, try_, started, finished, overhead, lines_sha256, lines_bytes = raw["round"]
    version, emulated, gpu_model, driver = raw["engine"]
    if not 0 <= min(started, finished) <= max(started, finished) <= LAST_SECOND:
        raise ValueError(f"it began at {started} and ended at {finished}")
    arms = list(zip(*raw["arms"], strict=True))
    outputs = from_columns(raw.get("outputs", ()), len(arms))  # missing from older releases
    clocks = raw.get("clocks", ())  # missing from older releases; None: no room
    seen = gpu_clocks.from_columns(clocks or (), len(arms))
    differs = raw.get("differs") or [None] * len(arms)
    failures = raw.get("failures")
    return RoundResult(
        round=number,
        try_=try_,
        replicates=tuple(
            Replicate(
                arm=arm,
                start_seconds=_measured(start),
                exit_code=None if exit_code is None else max(-(2**31), min(2**31 - 1, exit_code)),
                error=error,
                rest_sha256=_word(rest),
                kv_tokens=_measured(raw["kv"][row]),
                resolved={
                    key: of[row][0][:LONGEST_VALUE] if isinstance(of[row][0], str) else of[row][0]
                    for key, of in zip(raw["keys"], raw["resolved"], strict=True)
                    if of[row]
                },
                clocks=seen[row],
                points=tuple(itertools.islice(points, count)),
                outputs=outputs[row],
                differs=None if differs[row] is None else tuple(Difference(*map(str, d)) for d in differs[row]),
                failure=_former_failure(error) if failures is None else Failure.__members__.get(failures[row]),
            )
            for row, (arm, start, exit_code, error, rest, count) in enumerate(arms)
        ),
        gpus=tuple(map(_word, raw["gpus"][:MOST_GPUS])),
        gpu_model=gpu_model and _word(gpu_model),
        driver=driver and _word(driver),
        datasets=dict(raw["datasets"]),
        prompts=_sizes(raw["datasets"], raw.get("prompts", ())),
        engine_version=_word(version),
        paceline=_word(raw.get("paceline", "")),
        emulated=bool(emulated),
        started=started,
        finished=finished,
        overhead_seconds=_measured(overhead) or 0.0,
        lines_sha256=_word(lines_sha256),
        lines_bytes=_measured(lines_bytes) or 0,
        notes=(
            *(() if raw["whole"] else (NO_ROOM,)),
            *((NO_ROOM_AT,) if at is None else ()),
            *((NO_ROOM_MORE,) if left_out - {*GOOD} else ()),
            *((NO_ROOM_GOOD,) if left_out & {*GOOD} else ()),
            *((NO_ROOM_CLOCKS,) if clocks is None else ()),
            *raw["notes"],
        ),
    )


def _former_failure(error: str) -> Failure | None:
    """The failure in a message without `failures`: a message of this release has them beside any error.

    The client of the former release had only sentences, and a round that it began may end after the operator's upgrade:
    read as NotMeasured, a candidate's hanging server would not count against it. To be removed with the next prefix.
    """
    if error.startswith("not ready after"):
        return Failure.StartTimeout
    return Failure.TimedOut if "timed out after" in error else None


def _sizes(datasets: Iterable[str], sizes: Sequence[Any]) -> dict[str, int]:
    return {name: int(size) for name, size in zip(datasets, sizes, strict=False) if _measured(size) is not None}


def _point(workload: str, columns: Mapping[str, list[Any]], row: int, at: Sequence[Any]) -> Point:
    numbers = {name: _unpacked(name, column[row]) for name, column in columns.items()}
    if not all(isinstance(numbers[name], int) for name in ("asked", "completed", "errors")):
        raise TypeError("a point without counts")
    positions = tuple(map(float, at[:MOST_POSITIONS]))
    measured = all(_measured(fraction) is not None for fraction in positions)
    return Point(workload=workload, accepted_at=positions if measured else (), **numbers)


def _packed(name: str, value: float | None) -> float | None:
    unit = MICROSECONDS if name in TIMES else 1
    return _short(None if value is None else value * unit, DIGITS.get(name, OTHER_DIGITS))


def _unpacked(name: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return _measured(value / MICROSECONDS if name in TIMES else value)


def _measured(value: Any) -> Any:
    """None for an impossible number: a counter that ran backwards, a cache of more tokens than there are atoms. The arm
    loses the point; a status with such a number would be refused, and the run would never end."""
    return value if value is None or value == 0 or SMALLEST <= value <= LARGEST else None


def _word(text: Any) -> str:
    return str(text)[:LONGEST_WORD]


def _short(value: float | None, digits: int = OTHER_DIGITS) -> float | None:
    """A whole number as it is, another with so many significant digits; None if it is not finite."""
    if value is None or isinstance(value, int):
        return value
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
