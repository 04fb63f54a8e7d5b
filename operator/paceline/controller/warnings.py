"""Reads the Events of objects that wait without a reason in their status; no other Events are read."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from paceline.controller.cluster import WatchedCluster
from paceline.core.manifest import Object
from paceline.kube import Forbidden
from paceline.kube.resources import EVENT
from paceline.plan.trouble import event_selector, last_warning, silent

MAX_LOOKUPS = 6
"""Objects to look up in one pass: those that wait longest usually explain the others."""


async def warnings(cluster: WatchedCluster, waiting: Iterable[Object], now: datetime) -> Mapping[str, str]:
    """Uid → last warning. Empty if nothing has waited for long, or if the role (of an older release) forbids it."""
    warnings = {}
    for obj in silent(waiting, now)[:MAX_LOOKUPS]:
        metadata = obj["metadata"]
        try:
            events = await cluster.api.list(EVENT, metadata["namespace"], fields=event_selector(obj))
        except Forbidden:
            return {}
        if warning := last_warning(obj, events.items):
            warnings[metadata["uid"]] = warning
    return warnings
