"""Commits of a lost status, read back from runs and kept revisions.

Tools that restore a cluster drop statuses and give every object a new uid. Commits are in runs, and in the arguments
kept by ControllerRevisions. A child names its former owner until the garbage collector deletes it; `checks.orphans`
adopts it before that.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.core import DeploymentSpec
from paceline.core.names import snapshot_path
from paceline.plan.deployment.models import COMMIT, Commits, key_of, models_of, pin
from paceline.plan.deployment.pool import pools
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import owned_by
from paceline.render.serving import REVISION_LABEL

_NAMED = {"source", "revision", "commit"}


def read_back(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Commits:
    """Commits for a status without models: from runs, else from kept revisions, whose hash proves them."""
    of_runs: dict[tuple[str, str], str] = {}
    runs = (run for run in snapshot.of("BenchmarkRun") if owned_by(run, snapshot.owner.uid))
    for run in sorted(runs, key=lambda run: str(run["metadata"].get("creationTimestamp", ""))):
        of_runs |= _named(run["spec"])
    return {**_of_revisions(snapshot, spec, now), **of_runs}


def _named(value: Any) -> dict[tuple[str, str], str]:
    """Every pinned model and dataset in a run's spec."""
    if isinstance(value, Mapping):
        here = {(value["source"], value["revision"]): value["commit"]} if value.keys() >= _NAMED else {}
        return {**here, **_named(list(value.values()))}
    commits: dict[tuple[str, str], str] = {}
    for below in value if isinstance(value, list | tuple) else ():
        commits |= _named(below)
    return commits


def _of_revisions(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> Commits:
    """Paths in the arguments contain repositories and commits, but no branches. A guess counts if the present spec, at
    these commits, has the hash of the kept revision."""
    proven: dict[tuple[str, str], str] = {}
    for kept in snapshot.of("ControllerRevision"):
        text = json.dumps(kept["data"])
        commits = set(COMMIT.findall(text))
        paths = {
            (m.source, commit) for m in models_of(spec) for commit in commits if snapshot_path(m.source, commit) in text
        }
        guess = {key_of(m): commit for m in models_of(spec) for source, commit in paths if source == m.source}
        for pool in pools(snapshot, pin(spec, guess), now):
            if any(pool.revision(arm) == kept["metadata"]["labels"].get(REVISION_LABEL) for arm in pool.spec.arms):
                proven |= guess
    return proven
