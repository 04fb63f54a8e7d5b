"""What a lost status had pinned, read back from what it left behind; and children of an owner that was restored.

Tools that restore a cluster drop statuses and give every object a new uid. Commits stand in runs, and in the arguments
that ControllerRevisions keep; whose a child is, its owner's name tells until the garbage collector has taken it.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.core import DeploymentSpec
from paceline.core.names import DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL, snapshot_path
from paceline.plan.deployment.snapshot import Snapshot, models_of, pin, pools, to_bring
from paceline.plan.objects import Object, owned_by
from paceline.plan.step import Adopt
from paceline.render.serving import REVISION_LABEL

COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
Pinned = Mapping[tuple[str, str], str]
"""Source and revision → commit."""

NEVER_OWNED = {"Pod", "PersistentVolumeClaim"}
"""By a deployment."""
NAMED = {"source", "revision", "commit"}
UNKNOWN = "0" * 40


def read_back(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Pinned:
    """Of a status without models; of what runs do not name, what a kept revision proves by its own hash."""
    if snapshot.status.models:
        return {}
    of_runs: dict[tuple[str, str], str] = {}
    runs = (run for run in snapshot.of("BenchmarkRun") if owned_by(run, snapshot.owner.uid))
    for run in sorted(runs, key=lambda run: str(run["metadata"].get("creationTimestamp", ""))):
        of_runs |= _named(run["spec"])
    return {**_of_revisions(snapshot, spec, now), **of_runs}


def _named(value: Any) -> dict[tuple[str, str], str]:
    """Every model and dataset in a run's spec that is at a commit."""
    if isinstance(value, Mapping):
        here = {(value["source"], value["revision"]): value["commit"]} if value.keys() >= NAMED else {}
        return {**here, **_named(list(value.values()))}
    found: dict[tuple[str, str], str] = {}
    for below in value if isinstance(value, list | tuple) else ():
        found |= _named(below)
    return found


def _of_revisions(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Pinned:
    """Paths in the arguments name repositories and commits, not branches: believed where the spec of now, at these
    commits, is the very revision that was kept."""
    found: dict[tuple[str, str], str] = {}
    for kept in snapshot.of("ControllerRevision"):
        text = json.dumps(kept["data"])
        commits = set(COMMIT.findall(text))
        paths = {
            (m.source, commit) for m in models_of(spec) for commit in commits if snapshot_path(m.source, commit) in text
        }
        guess = {
            (m.source, m.revision): commit for m in models_of(spec) for source, commit in paths if source == m.source
        }
        wanted = {(one.source, one.revision): UNKNOWN for one in to_bring(spec)}
        for pool in pools(snapshot, pin(spec, {**wanted, **guess}), now):
            if any(pool.revision(arm) == kept["metadata"]["labels"].get(REVISION_LABEL) for arm in pool.spec.arms):
                found |= guess
    return found


def orphans(snapshot: Snapshot) -> tuple[Adopt, ...]:
    """Ours by label, and by the name of an owner that is no more, or without any owner. Velero restores no reference
    to an owner (pkg/restore/restore.go, resetMetadata); `kubectl delete --cascade=orphan` removes them."""
    owner = snapshot.owner
    return tuple(
        Adopt(child, owner.reference, f"its owner {owner.name} was restored under another uid")
        for kind in sorted(snapshot.children.keys() - NEVER_OWNED)
        for child in snapshot.of(kind)
        if (child["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL) == owner.name
        and not owned_by(child, owner.uid)
        and ((owner.kind, owner.name) in _owners(child) or _left_alone(child))
        and "deletionTimestamp" not in child["metadata"]
        and (kind, child["metadata"]["name"]) not in snapshot.refusals
    )


def _left_alone(child: Object) -> bool:
    """It says that it is made by us, of no run, and has no owner."""
    labels = child["metadata"]["labels"].items()
    return labels >= MANAGED_BY.items() and RUN_LABEL not in dict(labels) and not _owners(child)


def _owners(child: Object) -> set[tuple[str, str]]:
    return {(one.get("kind", ""), one.get("name", "")) for one in child["metadata"].get("ownerReferences", ())}
