"""Pools that the spec no longer has: their requests that were carried out stay in status while their annotations do, so
that none acts again when the pool comes back."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from paceline.api.status import DroppedPool, Handled, PoolStatus
from paceline.api.status import SpeculativeDeploymentStatus as Status

MOST = 64
"""That status holds."""

Asked = Mapping[tuple[str, str], str]
"""Pool and field of `Handled` → the value that is annotated."""


def remembered(status: Status, pool: str) -> PoolStatus:
    """Its entry of status. That of a pool which is new, or has come back, has only its requests that were carried
    out."""
    entry = next((entry for entry in status.pools if entry.name == pool), None)
    return entry or PoolStatus(name=pool, handled=_handled(status, pool))


def dropped(before: Status, entries: Iterable[PoolStatus], asked: Asked) -> tuple[DroppedPool, ...]:
    """Every pool that has no entry any more, by name, with its requests that are still annotated."""
    known = {entry.name for entry in entries}
    gone = sorted({*(entry.name for entry in before.pools), *(one.name for one in before.dropped)} - known)
    found = ((name, _still_asked(remembered(before, name).handled, name, asked)) for name in gone)
    return tuple(DroppedPool(name=name, handled=handled) for name, handled in found if handled)[:MOST]


def _handled(status: Status, pool: str) -> Handled | None:
    return next((one.handled for one in status.dropped if one.name == pool), None)


def _still_asked(handled: Handled | None, pool: str, asked: Asked) -> Handled | None:
    names = [field.name for field in fields(Handled)]
    values = {name: asked[pool, name] for name in names if (pool, name) in asked}
    still = {name: value for name, value in values.items() if getattr(handled, name, "") == value}
    return Handled(**still) if still else None
