"""The Deployment or LeaderWorkerSet of a pool: the one place where `serve` and `keep_serving` make it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.api.status import PoolStatus
from paceline.core import DeploymentSpec, PoolSpec
from paceline.plan.deployment import loan
from paceline.plan.deployment.patience import patient
from paceline.plan.deployment.servers import Servers
from paceline.plan.deployment.size import replicas
from paceline.plan.deployment.surge import is_in_place
from paceline.plan.deployment.tries import tries
from paceline.plan.objects import annotations
from paceline.plan.step import Manifest
from paceline.render import Owner, servers

WHY = "paceline.dev/why"
"""Annotation of the servers: why they are of their arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A revision that a pool is to serve."""

    revision: str
    rendering: Mapping[str, Any]
    why: str
    has_served: bool
    """All servers were of it and ready since it became the goal."""
    waits: bool
    """For a verdict, with no servers until then."""
    in_place: bool
    """Each server ends before its successor starts."""


def as_they_are(servers: Servers, rendering: Mapping[str, Any]) -> Goal:
    """The servers go on as they are; `rendering` is the one that is kept of their revision."""
    return Goal(
        revision=servers.revision,
        rendering=rendering,
        why=annotations(servers.manifest).get(WHY, ""),
        has_served=True,
        waits=False,
        in_place=is_in_place(servers.manifest),
    )


def server_manifest(
    owner: Owner,
    deployment: DeploymentSpec,
    pool: PoolSpec,
    remembered: PoolStatus,
    current: Servers | None,
    goal: Goal,
    now: datetime,
) -> Manifest:
    """`current` are the servers as they are now, `remembered` the pool's entry of status."""
    why = {WHY: goal.why} if goal.why else {}
    notes = {**why, **tries(current, remembered, now)[0], **loan.annotation(remembered)}
    return servers(
        owner,
        pool.name,
        patient(goal.rendering, goal.revision, current, goal.has_served, deployment),
        replicas(pool.replicas, goal.waits, remembered, current),
        deployment.promotion.progress_deadline,
        notes,
        surge=not goal.in_place,
    )
