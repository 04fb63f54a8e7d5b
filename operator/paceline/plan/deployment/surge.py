"""Whether a roll-out starts one server more than the pool has, or replaces servers in place.

`promotion.surge: Auto` tries one server more: the old ones serve until it is ready. A full cluster has no room for it;
once it has waited for a minute, servers are replaced in place, one at a time. What was decided stands in status
(`target.surge`) before the servers are changed, and stays as long as the target does: room that comes and goes does not
change a roll-out that goes on.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from paceline.api.status import Target
from paceline.core import PromotionSpec, Surge
from paceline.plan.deployment.servers import Servers
from paceline.plan.objects import Object
from paceline.plan.step import parse_time, timestamp

PATIENCE = timedelta(minutes=1)
"""How long one server more may wait for room. It counts while no other server of the pool is ending: that one's
accelerators are free only once it has drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The attempt to start one server more, as fields of `target`."""

    surge: Literal["Tried", "Skipped", "Withdrawn"] | None = None
    surge_waits_since: str = ""


def withdrawn_at(target: Attempt | Target | None) -> datetime | None:
    """When one server more that waits for room is given up; None if none waits."""
    return parse_time(target.surge_waits_since) + PATIENCE if target and target.surge_waits_since else None


def in_place(promotion: PromotionSpec, target: Target | None) -> bool:
    """Whether servers are replaced in place: each ends before its successor starts."""
    return promotion.surge is Surge.NEVER or (target is not None and target.surge in ("Skipped", "Withdrawn"))


def is_in_place(servers: Object) -> bool:
    """Whether the Deployment replaces its servers in place as it is now."""
    return not servers["spec"].get("strategy", {}).get("rollingUpdate", {}).get("maxSurge", 0)


def attempt(
    promotion: PromotionSpec, servers: Servers | None, before: Target | None, revision: str, now: datetime
) -> Attempt:
    """`before` is the target of the last pass, `revision` that of the target now. Nothing is tried beside servers that
    are not all ready when they are to be replaced: one more would not make up for those that are missing, and would
    delay what replaces them."""
    if promotion.surge is Surge.NEVER or servers is None or not servers.replicas:
        return Attempt()
    if servers.manifest["kind"] != "Deployment":
        return Attempt()
    last = before if before and before.revision == revision else Target()
    if last.surge in ("Skipped", "Withdrawn"):
        return Attempt(surge=last.surge)
    if servers.revision != revision and not last.surge:
        return Attempt(surge="Skipped" if servers.ready < servers.replicas else "Tried")
    if servers.revision != revision or not servers.one_more_waits:
        return Attempt(surge=last.surge)
    waiting = Attempt(surge=last.surge, surge_waits_since=last.surge_waits_since or timestamp(now))
    end = withdrawn_at(waiting)
    return Attempt(surge="Withdrawn") if end and now >= end else waiting
