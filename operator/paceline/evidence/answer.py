"""What a round answers, small enough for a termination message.

A message is `paceline1:` and the base85 of a deflated compact JSON. Points are written by column, so equal numbers
beside each other cost almost nothing: 48 points of 15 numbers fit with their arms. Pods report numbers and judge
nothing; the operator does, so that evidence can be judged again.
"""

import base64
import dataclasses
import hashlib
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.evidence.question import Scalar

PREFIX = "paceline1:"
LONGEST = 4096
"""Bytes the kubelet keeps of a container's termination message (of a longer one: the last)."""
LONGEST_ERROR = 200
LARGEST_JSON = 1 << 20
DIGITS = 6

SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
VOLATILE = frozenset({"launch_command", "internal_states", "startup_time", "status", "env_vars"})
"""Of the resolved arguments: what differs from process to process, and what repeats secrets."""


class AnswerError(ValueError):
    """A message that holds no result, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One arm on one workload. Times in seconds, throughputs in output tokens per second; None: not to be had.

    `output_throughput` is output tokens over the client's `duration`; `steady_throughput` the same in the window in
    which at least 90 % of the peak concurrency was reached. `accept_length` is the server's average since the flush
    before the workload; `verify_calls` and `retractions` are differences of its counters.
    """

    workload: str
    asked: int
    completed: int
    errors: int
    duration: float | None = None
    output_tokens: int | None = None
    output_throughput: float | None = None
    steady_throughput: float | None = None
    mean_ttft: float | None = None
    p95_ttft: float | None = None
    mean_tpot: float | None = None
    p95_tpot: float | None = None
    p95_e2e: float | None = None
    accept_length: float | None = None
    verify_calls: int | None = None
    retractions: int | None = None


NUMBERS = tuple(f.name for f in dataclasses.fields(Point) if f.name != "workload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One fresh server process of one arm. `exit_code` and `error` are set if it did not live to the end.

    `resolved` are the values of the plan's watched arguments; `rest_sha256` the first 16 hex digits of the SHA-256 of
    all the others.
    """

    arm: str
    start_seconds: float | None = None
    exit_code: int | None = None
    error: str = ""
    resolved: Mapping[str, Scalar] = field(default_factory=dict)
    rest_sha256: str = ""
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """`overhead_seconds`: GPUs held that was neither a server's start nor a measurement. Epoch seconds."""

    round: int
    attempt: int
    replicates: tuple[Replicate, ...]
    gpus: tuple[str, ...] = ()
    driver: str | None = None
    engine_version: str = ""
    emulated: bool = False
    started: float = 0.0
    finished: float = 0.0
    overhead_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What did not spoil the round but should be known, such as an unwritable results directory."""


def pick(resolved: Mapping[str, Any], watched: tuple[str, ...]) -> tuple[dict[str, Scalar], str]:
    """The watched values of a server's resolved arguments, and a digest of the rest. Never a secret.

    A watched name that looks like a secret is kept only if its value is no string: `speculative_num_draft_tokens`.
    """
    kept = {key: resolved[key] for key in watched if key in resolved and _tellable(key, resolved[key])}
    rest = {
        key: value
        for key, value in resolved.items()
        if key not in watched and key not in VOLATILE and not SECRET.search(key)
    }
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), default=str)
    return kept, hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _tellable(key: str, value: Any) -> bool:
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and not SECRET.search(key))


def encode(result: RoundResult) -> str:
    """The message: ASCII, at most 4096 bytes. Raises AnswerError if the result does not fit."""
    points = [(arm, point) for arm, replicate in enumerate(result.replicates) for point in replicate.points]
    workloads = list(dict.fromkeys(point.workload for _, point in points))
    keys = list(dict.fromkeys(key for replicate in result.replicates for key in replicate.resolved))
    raw = {
        "round": [result.round, result.attempt, _short(result.started), _short(result.finished)],
        "overhead": _short(result.overhead_seconds),
        "gpus": list(result.gpus),
        "driver": result.driver,
        "engine": [result.engine_version, result.emulated],
        "notes": [note[:LONGEST_ERROR] for note in result.notes[:4]],
        "keys": keys,
        "arms": [
            [r.arm, _short(r.start_seconds), r.exit_code, r.error[:LONGEST_ERROR], r.rest_sha256]
            for r in result.replicates
        ],
        "resolved": [[[r.resolved[key]] if key in r.resolved else [] for r in result.replicates] for key in keys],
        "workloads": workloads,
        "of": [[arm, workloads.index(point.workload)] for arm, point in points],
        "points": [[_short(getattr(point, name)) for _, point in points] for name in NUMBERS],
    }
    packed = zlib.compress(json.dumps(raw, separators=(",", ":")).encode(), level=9)
    message = PREFIX + base64.b85encode(packed).decode()
    if len(message) > LONGEST:
        raise AnswerError(f"the result of {len(points)} points takes {len(message)} bytes; a message holds {LONGEST}")
    return message


def decode(text: str) -> RoundResult:
    """The result in a termination message. Raises AnswerError and says what is wrong with it."""
    text = text.strip()
    if not text:
        raise AnswerError("the message is empty")
    if not text.startswith(PREFIX):
        raise AnswerError(f"the message does not begin with {PREFIX}")
    try:
        packed = base64.b85decode(text.removeprefix(PREFIX))
        inflater = zlib.decompressobj()
        raw = inflater.decompress(packed, LARGEST_JSON)
    except (ValueError, zlib.error) as error:
        raise AnswerError(f"the message is damaged: {error}") from error
    if not inflater.eof:
        raise AnswerError("the message is cut off")
    try:
        return _result(json.loads(raw))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise AnswerError(f"the message holds no result of this version: {error!r}") from error


def _result(raw: dict[str, Any]) -> RoundResult:
    columns = dict(zip(NUMBERS, raw["points"], strict=True))
    points: list[list[Point]] = [[] for _ in raw["arms"]]
    for row, (arm, workload) in enumerate(raw["of"]):
        numbers = {name: _number(column[row]) for name, column in columns.items()}
        if not all(isinstance(numbers[name], int) for name in ("asked", "completed", "errors")):
            raise TypeError("a point without counts")
        points[arm].append(Point(workload=raw["workloads"][workload], **numbers))
    number, attempt, started, finished = raw["round"]
    version, emulated = raw["engine"]
    return RoundResult(
        round=number,
        attempt=attempt,
        replicates=tuple(
            Replicate(
                arm=arm,
                start_seconds=start,
                exit_code=exit_code,
                error=error,
                rest_sha256=rest,
                resolved={key: of[row][0] for key, of in zip(raw["keys"], raw["resolved"], strict=True) if of[row]},
                points=tuple(points[row]),
            )
            for row, (arm, start, exit_code, error, rest) in enumerate(raw["arms"])
        ),
        gpus=tuple(raw["gpus"]),
        driver=raw["driver"],
        engine_version=str(version),
        emulated=bool(emulated),
        started=started,
        finished=finished,
        overhead_seconds=raw["overhead"],
        notes=tuple(raw["notes"]),
    )


def _number(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r} is no number")
    return value


def _short(value: float | None) -> float | None:
    """Six significant digits (whole numbers keep theirs); what is not finite is written as absent."""
    if value is None or isinstance(value, int):
        return value
    if not math.isfinite(value):
        return None
    if abs(value) >= 10**DIGITS:
        return round(value)
    return float(f"{value:.{DIGITS}g}")
