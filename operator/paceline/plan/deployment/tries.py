"""What the cluster refused is tried again soon after it is allowed.

A ReplicaSet whose pod is refused waits twice as long after each try, up to 1000 s (Kubernetes,
client-go/util/workqueue/default_rate_limiters.go), and hears of no quota that was lifted. A change of its annotations
makes it try at once, and those of a Deployment are copied to it (pkg/controller/deployment/util/deployment_util.go,
SetNewReplicaSetAnnotations). A Job needs nothing of the kind, as it waits for a minute at most
(pkg/controller/job/job_controller.go, MaxJobApiBackOff). The annotations of a LeaderWorkerSet do not reach its
StatefulSet.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from paceline.api.status import PoolStatus
from paceline.plan.deployment.snapshot import Servers
from paceline.plan.pods import refused
from paceline.plan.step import parse_time, timestamp

TRIED = "paceline.dev/tried"
"""Annotation of a Deployment: when its pods were last asked for again, and the `retry` that was known then."""
AFTER = timedelta(minutes=1)
"""Between two tries that nobody asked for."""


def tries(there: Servers | None, entry: PoolStatus, now: datetime) -> tuple[dict[str, str], datetime | None]:
    """The annotation as it is to be, and when the next try is due. `entry`: what the pool remembers, `handled` above
    all. It stays when the refusal ends, so that one that comes and goes makes no more writes than one that stays."""
    if there is None or there.found["kind"] != "Deployment":
        return {}, None
    before = (there.found["metadata"].get("annotations") or {}).get(TRIED, "")
    kept = {TRIED: before} if before else {}
    refusal = refused(there.found, {})
    if refusal is None:
        return kept, None
    when, _, known = before.partition(" ")
    last, asked = _time(when) or refusal.since, (entry.handled and entry.handled.retry) or ""
    if last and last <= now < last + AFTER and asked == known:
        return kept, last + AFTER
    return {TRIED: f"{timestamp(now)} {asked}".strip()}, now + AFTER


def _time(text: str) -> datetime | None:
    """None for what is not ours."""
    with suppress(ValueError):
        found = parse_time(text)
        return found if found.tzinfo else None
    return None
