"""Round records as JSON, as the API server stores them, for tests of `evidence.round_status`."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.api.round import Round
from paceline.core import Answers, Measurement
from paceline.core.record import from_status, to_status
from paceline.evidence import round_status as codec

Json = Mapping[str, Any]


def round_status(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return to_status(codec.round_record(*args, **kwargs))


def failed_round(**kwargs: Any) -> dict[str, Any]:
    return to_status(codec.failed_round(**kwargs))


def records(rounds: Iterable[Json]) -> tuple[Round, ...]:
    return tuple(from_status(Round, entry) for entry in rounds)


def measurements(rounds: Iterable[Json]) -> list[Measurement]:
    return codec.measurements(records(rounds))


def answers(rounds: Iterable[Json]) -> list[Answers]:
    return codec.answers(records(rounds))


def point_noise(rounds: Iterable[Json]) -> float | None:
    return codec.point_noise(records(rounds))
