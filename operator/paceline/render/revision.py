"""A revision: the hash of what shapes a server process, and the rendering that is pinned to it."""

import dataclasses
from typing import Any

from paceline.core import Arm, Server
from paceline.core.names import child_name
from paceline.render.common import Manifest, Owner, digest, metadata
from paceline.render.serving import REVISION_LABEL, labels


def revision_of(server: Server, arm: Arm) -> str:
    """Ten hex digits. Values equal to their default are left out, so that a new field moves no revision."""
    inputs = {"server": _told(server), "draft": _told(arm.draft), "tree": _told(arm.tree), "args": list(arm.args)}
    others = {
        "block_size": arm.block_size,
        "ngram": _told(arm.ngram),
        "adaptive": _told(arm.adaptive),
        "schedule": [_told(depth) for depth in arm.schedule] or None,
        "custom": _told(arm.custom),
    }
    return digest({**inputs, **{name: value for name, value in others.items() if value is not None}})


def controller_revision(owner: Owner, pool: str, revision: str, rendering: Manifest) -> Manifest:
    """Keeps what `serving.rendering` gave: a new release goes on serving it until the pool's inputs change."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata(
            child_name(owner.name, pool, revision), owner, {**labels(owner, pool), REVISION_LABEL: revision}
        ),
        "revision": 1,
        "data": rendering,
    }


def _told(value: Any) -> Any:
    """A dataclass without what is at its default; other values as they are."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    return {
        field.name: _told(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != _default(field)
    }


def _default(field: "dataclasses.Field[Any]") -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()
