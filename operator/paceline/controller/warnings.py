"""What Events say of objects that wait without saying why; nothing else of the cluster's Events is ever read."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from paceline.controller.cluster import Cluster
from paceline.kube import Forbidden
from paceline.kube.resources import EVENT
from paceline.plan.objects import Object
from paceline.plan.silence import event_selector, last_warning, silent

MOST = 6
"""Objects asked about in one pass: the first will tell what is wrong with the others."""


async def warnings(cluster: Cluster, waiting: Iterable[Object], now: datetime) -> Mapping[str, str]:
    """By uid. Empty where nothing waits for long, and where we may not ask (rights of an older release)."""
    told = {}
    for found in silent(waiting, now)[:MOST]:
        metadata = found["metadata"]
        try:
            events = await cluster.api.list(EVENT, metadata["namespace"], fields=event_selector(found))
        except Forbidden:
            return {}
        if said := last_warning(found, events.items):
            told[metadata["uid"]] = said
    return told
