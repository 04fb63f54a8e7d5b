"""Pods that the cluster has refused are tried again soon after they are allowed.

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
from paceline.plan.deployment.servers import Servers
from paceline.plan.pods import refused
from paceline.plan.step import parse_time, timestamp

TRIED = "paceline.dev/tried"
"""Annotation of a Deployment: time of the last try, and the token of the latest `retry` request then."""
AFTER = timedelta(minutes=1)
"""Between two tries without a request."""


def tries(servers: Servers | None, entry: PoolStatus, now: datetime) -> tuple[dict[str, str], datetime | None]:
    """The annotation to apply, and when the next try is due. `entry` is the pool's entry of status. The annotation
    stays when the refusal ends, so that a refusal that comes and goes causes no more writes than one that stays."""
    if servers is None or servers.manifest["kind"] != "Deployment":
        return {}, None
    before = (servers.manifest["metadata"].get("annotations") or {}).get(TRIED, "")
    kept = {TRIED: before} if before else {}
    refusal = refused(servers.manifest, {})
    if refusal is None:
        return kept, None
    when, _, token_then = before.partition(" ")
    last, token = _time(when) or refusal.since, ((entry.handled and entry.handled.retry) or "").strip()
    if last and last <= now < last + AFTER and token == token_then:
        return kept, last + AFTER
    return {TRIED: f"{timestamp(now)} {token}".strip()}, now + AFTER


def _time(text: str) -> datetime | None:
    """None if the annotation is not ours."""
    with suppress(ValueError):
        time = parse_time(text)
        return time if time.tzinfo else None
    return None
