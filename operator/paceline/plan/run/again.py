"""The next round or try: which number it has, where it had best run, and not before when."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta

from paceline.api.run_status import Round
from paceline.plan.step import parse_time
from paceline.render.where import Where

FIRST_DISTANCE, LONGEST_DISTANCE = timedelta(seconds=15), timedelta(minutes=10)
"""Between a try without a result and the next one, doubled with each in a row: a device plugin that restarts, a volume
that is let go of or a registry that comes back takes seconds to minutes."""


def next_try(records: Sequence[Round]) -> tuple[int, int]:
    """The number of the round that comes after these, and of the try."""
    number = sum(1 for record in records if not record.error)
    return number, sum(1 for record in records if record.round == number)


def latest_node(records: Sequence[Round]) -> str:
    """Where a round was last, with a result or without."""
    return next((record.node for record in reversed(records) if record.node), "")


def where(records: Sequence[Round], namespaces: tuple[str, ...]) -> Where:
    """On the node of the latest result, where images and models are; not on one that has failed the run since."""
    failed = tuple(sorted({record.node for record in _since_result(records) if record.node}))
    node = next((record.node for record in reversed(records) if not record.error), "")
    return Where(node="" if node in failed else node, avoid=failed, namespaces=namespaces)


def not_before(records: Sequence[Round]) -> datetime | None:
    """None if the next one may start at once: it always may after a result. Records of an older release say no time."""
    failed = _since_result(records)
    if not failed or not failed[0].finished_at:
        return None
    doubled: timedelta = FIRST_DISTANCE * 2 ** min(len(failed) - 1, 10)
    return parse_time(failed[0].finished_at) + min(LONGEST_DISTANCE, doubled)


def _since_result(records: Sequence[Round]) -> tuple[Round, ...]:
    """The tries in a row without a result, the latest first."""
    return tuple(itertools.takewhile(lambda record: bool(record.error), reversed(records)))
