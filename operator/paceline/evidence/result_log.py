"""A round's result as a line of its client's log: the result so far before each arm, and the whole one last.

    paceline2 DIGEST {"round": …, "replicates": […]}

DIGEST is the start of the SHA-256 of the rest of the line. The result is in the log because a log has room for every
number, and because no engine's container can write to the client's log. Pods only report numbers; the operator judges
them, so that evidence can be judged again.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from paceline.core.text import error_text, in_all_texts, printable
from paceline.evidence.result import Context, Parts, Point, Replicate, RoundResult

PREFIX = "paceline2 "
_LONGEST_ERROR = 200
LONGEST_WORD = 500
"""Maximum characters of a version, a product or an id: the API server refuses a status with a longer one."""
_LONGEST_VALUE = 2048
"""Maximum characters of a resolved argument; users cannot set longer ones (`api.types.Argument`)."""
MOST_GPUS, MOST_POSITIONS, MOST_CONTEXTS, MOST_NOTES = 64, 32, 8, 8
ALWAYS_THERE, POSITIONS = ("asked", "completed", "errors"), "accepted_at"
"""Fields of a point: counts that are always there, and the list that is cut to `MOST_POSITIONS`."""
LARGEST, SMALLEST = 1e15, 1e-9
"""Range of a server's non-zero numbers; others are not measurements. A status has 32 characters for a number."""
DIGITS, OF_THROUGHPUT = 4, 5
"""Significant digits of a number with a fraction: the rounding is far below the noise of a measurement."""
LAST_SECOND = 253402300799
"""End of the year 9999, in epoch seconds."""
DIGEST_LENGTH = 16

RESULT = TypeAdapter(RoundResult)


class AnswerError(ValueError):
    """The log has no valid result; the message says why."""


def encode(result: RoundResult) -> str:
    """The line with the result, ASCII."""
    plain = json.dumps(json.loads(RESULT.dump_json(result, exclude_defaults=True)), separators=(",", ":"))
    return f"{PREFIX}{_digest(plain)} {plain}"


def decode(log: str) -> RoundResult:
    """The last result in a client's log: of the arms that had ended. Raises AnswerError, which says what is wrong."""
    last = next((record for record in reversed(list(_records(log))) if "replicates" in record), None)
    if last is None:
        raise AnswerError("the client's log has no result")
    try:
        believed = {**last, "replicates": [_believed(replicate) for replicate in last["replicates"]]}
        return _clean(RESULT.validate_json(json.dumps(in_all_texts(_numbers(believed), printable)), strict=True))
    except (ValidationError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerError(
            f"the client's log holds no result of this version: {error_text(error)[:_LONGEST_ERROR]}"
        ) from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def _records(log: str) -> Iterator[dict[str, Any]]:
    """Complete records only; skips lines that were cut off or written by another program."""
    for line in log.splitlines():
        digest, _, text = line.removeprefix(PREFIX).partition(" ")
        if line.startswith(PREFIX) and digest == _digest(text):
            try:
                record = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _numbers(value: Any) -> Any:
    """Replace numbers that are not finite by None. The arm loses the point; otherwise the API server would refuse the
    status and the run would never end."""
    match value:
        case dict():
            return {key: _numbers(item) for key, item in value.items()}
        case list():
            return [_numbers(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def _believed(replicate: dict[str, Any]) -> dict[str, Any]:
    """The replicate with negative counts removed from its points and positions cut to the maximum of a record."""
    points = [
        {
            name: value[:MOST_POSITIONS] if name == POSITIONS else value
            for name, value in point.items()
            if name in ALWAYS_THERE or not (isinstance(value, int) and value < 0)
        }
        for point in replicate.get("points", ())
    ]
    return {**replicate, "points": points} if points else replicate


def _clean(result: RoundResult) -> RoundResult:
    if not 0 <= min(result.started, result.finished) <= max(result.started, result.finished) <= LAST_SECOND:
        raise ValueError(f"it began at {result.started} and ended at {result.finished}")
    return replace(
        result,
        replicates=tuple(map(_replicate, result.replicates)),
        gpus=tuple(map(_word, result.gpus[:MOST_GPUS])),
        gpu_model=result.gpu_model and _word(result.gpu_model),
        driver=result.driver and _word(result.driver),
        prompts={name: size for name, size in result.prompts.items() if _measured(size) is not None},
        engine_version=_word(result.engine_version),
        paceline=_word(result.paceline),
        overhead_seconds=_measured(result.overhead_seconds) or 0.0,
        lines_sha256=_word(result.lines_sha256),
        lines_bytes=_measured(result.lines_bytes) or 0,
        notes=tuple(note[:_LONGEST_ERROR] for note in result.notes[:MOST_NOTES]),
    )


def _replicate(one: Replicate) -> Replicate:
    return replace(
        one,
        start_seconds=_measured(one.start_seconds),
        seconds=Parts(**{part: _measured(getattr(one.seconds, part)) or None for part in PARTS}),
        exit_code=None if one.exit_code is None else max(-(2**31), min(2**31 - 1, one.exit_code)),
        error=one.error[:_LONGEST_ERROR],
        no_energy=one.no_energy[:_LONGEST_ERROR],
        rest_sha256=_word(one.rest_sha256),
        differing=_measured(one.differing) or 0,
        version=_word(one.version),
        kv_tokens=_measured(one.kv_tokens),
        resolved={
            key: value[:_LONGEST_VALUE] if isinstance(value, str) else value for key, value in one.resolved.items()
        },
        points=tuple(map(_point, one.points)),
    )


PARTS = tuple(field.name for field in fields(Parts))
NUMBERS = tuple(field.name for field in fields(Point) if field.name not in ("workload", "contexts", POSITIONS))
CONTEXT = tuple(field.name for field in fields(Context))


def _point(point: Point) -> Point:
    counts = {name: getattr(point, name) for name in ALWAYS_THERE}
    numbers = {name: _measured(getattr(point, name), _digits(name)) for name in NUMBERS} | counts
    measured = all(_measured(fraction) is not None for fraction in point.accepted_at)
    contexts = tuple(map(_context, point.contexts[:MOST_CONTEXTS]))
    return replace(point, accepted_at=point.accepted_at if measured else (), contexts=contexts, **numbers)


def _context(one: Context) -> Context:
    return Context(**{name: _measured(getattr(one, name)) for name in CONTEXT if name != "over"}, over=max(0, one.over))


def _digits(name: str) -> int:
    return OF_THROUGHPUT if name.endswith("_throughput") else DIGITS


def _measured(value: Any, digits: int = DIGITS) -> Any:
    if value is None or value == 0:
        return value
    if not SMALLEST <= value <= LARGEST:
        return None
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _word(text: str) -> str:
    return text[:LONGEST_WORD]
