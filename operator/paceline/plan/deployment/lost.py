"""Commits of a lost status, read back from runs and kept revisions; and children of an owner that was restored.

Tools that restore a cluster drop statuses and give every object a new uid. Commits are in runs, and in the arguments
that ControllerRevisions keep. A child names its owner until the garbage collector deletes it.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.core import DeploymentSpec
from paceline.core.names import DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL, snapshot_path
from paceline.plan.deployment.pins import Commits, artifacts_of, key_of, models_of, pin
from paceline.plan.deployment.pool import pools
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import Object, owned_by
from paceline.plan.step import Adopt
from paceline.render.serving import REVISION_LABEL

COMMIT = re.compile(r"\b[0-9a-f]{40}\b")

NEVER_OWNED = {"Pod", "PersistentVolumeClaim"}
"""Kinds that a SpeculativeDeployment does not own."""
NAMED = {"source", "revision", "commit"}
UNKNOWN = "0" * 40


def read_back(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Commits:
    """Commits for a status without models: from runs, else from kept revisions, whose hash proves them."""
    if any(not artifact.is_dataset for artifact in snapshot.status.artifacts):
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
    commits: dict[tuple[str, str], str] = {}
    for below in value if isinstance(value, list | tuple) else ():
        commits |= _named(below)
    return commits


def _of_revisions(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Commits:
    """Paths in the arguments have repositories and commits, and no branches. A guess counts if the present spec, at
    these commits, has the hash of the kept revision."""
    proven: dict[tuple[str, str], str] = {}
    for kept in snapshot.of("ControllerRevision"):
        text = json.dumps(kept["data"])
        commits = set(COMMIT.findall(text))
        paths = {
            (m.source, commit) for m in models_of(spec) for commit in commits if snapshot_path(m.source, commit) in text
        }
        guess = {key_of(m): commit for m in models_of(spec) for source, commit in paths if source == m.source}
        wanted = {key_of(artifact): UNKNOWN for artifact in artifacts_of(spec)}
        for pool in pools(snapshot, pin(spec, {**wanted, **guess}), now):
            if any(pool.revision(arm) == kept["metadata"]["labels"].get(REVISION_LABEL) for arm in pool.spec.arms):
                proven |= guess
    return proven


def orphans(snapshot: Snapshot) -> tuple[Adopt, ...]:
    """Adopt children that are ours by label and name a former owner of our name, or no owner. Velero does not restore
    references to owners (pkg/restore/restore.go, resetMetadata); `kubectl delete --cascade=orphan` removes them."""
    owner = snapshot.owner
    return tuple(
        Adopt(child, owner.reference, f"its owner {owner.name} was restored under another uid")
        for kind in sorted(snapshot.children.keys() - NEVER_OWNED)
        for child in snapshot.of(kind)
        if (child["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL) == owner.name
        and not owned_by(child, owner.uid)
        and ((owner.kind, owner.name) in _owners(child) or _without_owner(child))
        and "deletionTimestamp" not in child["metadata"]
        and (kind, child["metadata"]["name"]) not in snapshot.refusals
    )


def _without_owner(child: Object) -> bool:
    """Whether its labels say that the operator made it for no run, and it has no owner."""
    labels = child["metadata"]["labels"].items()
    return labels >= MANAGED_BY.items() and RUN_LABEL not in dict(labels) and not _owners(child)


def _owners(child: Object) -> set[tuple[str, str]]:
    return {(owner.get("kind", ""), owner.get("name", "")) for owner in child["metadata"].get("ownerReferences", ())}
