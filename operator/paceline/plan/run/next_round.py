"""The next round or try: its number, its node, and its earliest time."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta

from paceline.api.round import Round
from paceline.plan.step import parse_time
from paceline.render.where import Where

FIRST_DISTANCE, LONGEST_DISTANCE = timedelta(seconds=15), timedelta(minutes=10)
"""Delay from a try without a result to the next one; doubled after each consecutive failure. A restarting device
plugin, a volume being detached or a returning registry takes seconds to minutes."""


def next_try(records: Sequence[Round]) -> tuple[int, int]:
    """Number of the round after these records, and of its try: one that no record has, even after deletions."""
    number = max((record.round + 1 for record in records if not record.error), default=0)
    return number, max((record.try_ + 1 for record in records if record.round == number), default=0)


def latest_node(records: Sequence[Round]) -> str:
    """Node of the latest round, with or without a result."""
    return next((record.node for record in reversed(records) if record.node), "")


def where(records: Sequence[Round], namespaces: tuple[str, ...]) -> Where:
    """The node of the latest result, because it has images and models, unless a later try failed on it."""
    failed = tuple(sorted({record.node for record in _since_result(records) if record.node}))
    node = next((record.node for record in reversed(records) if not record.error), "")
    return Where(node="" if node in failed else node, avoid=failed, namespaces=namespaces)


def not_before(records: Sequence[Round], now: datetime) -> datetime | None:
    """Earliest start of the next try. None, so that it may start at once, after a result and after records of an older
    release, which have no time. A time in the future is not a valid end of a try."""
    failed = _since_result(records)
    if not failed or not failed[0].completion_time or (ended := parse_time(failed[0].completion_time)) > now:
        return None
    doubled: timedelta = FIRST_DISTANCE * 2 ** min(len(failed) - 1, 10)
    return ended + min(LONGEST_DISTANCE, doubled)


def _since_result(records: Sequence[Round]) -> tuple[Round, ...]:
    """The consecutive tries without a result, newest first."""
    return tuple(itertools.takewhile(lambda record: bool(record.error), reversed(records)))
