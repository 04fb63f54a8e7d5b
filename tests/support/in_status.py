"""Records as the API server holds them: what `evidence.keep` makes of rounds, read from JSON and written to it."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.api.record import from_status, to_status
from paceline.api.run_status import Round
from paceline.core import Answers, Measurement
from paceline.evidence import keep

Json = Mapping[str, Any]


def round_status(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return to_status(keep.round_record(*args, **kwargs))


def failed_round(**kwargs: Any) -> dict[str, Any]:
    return to_status(keep.failed_round(**kwargs))


def records(rounds: Iterable[Json]) -> tuple[Round, ...]:
    return tuple(from_status(Round, entry) for entry in rounds)


def measurements(rounds: Iterable[Json]) -> list[Measurement]:
    return keep.measurements(records(rounds))


def answers(rounds: Iterable[Json]) -> list[Answers]:
    return keep.answers(records(rounds))


def point_noise(rounds: Iterable[Json]) -> float | None:
    return keep.point_noise(records(rounds))
