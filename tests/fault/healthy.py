"""What the liveness probe says of an operator that works in a test."""

import asyncio

from paceline.controller.cluster import WatchedCluster
from paceline.controller.health import Health
from paceline.kube import Contact, Leading


def leads() -> Leading:
    return Leading(asyncio.Event(), lambda: None)


def fault_of(view: WatchedCluster) -> str | None:
    """Of its passes alone: nothing here is the answer of a server."""
    return Health(cluster=view, contact=Contact(), led=leads()).fault()
