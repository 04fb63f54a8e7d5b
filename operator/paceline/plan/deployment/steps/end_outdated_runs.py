"""Runs whose verdict can never be used end while the models are being downloaded, or cannot be: no step of a pool runs
then that would end them."""

from dataclasses import replace
from datetime import datetime

from paceline import api
from paceline.core import DeploymentSpec
from paceline.plan.deployment.pins import artifacts_of, datasets_of, key_of, models_of, pin
from paceline.plan.deployment.pool import pools
from paceline.plan.deployment.runs import Run, supersede
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def end_outdated_runs(snapshot: Snapshot, now: datetime) -> StepResult:
    """Supersede runs that answer the spec's question at no commit of its models. None ends while suspended: the former
    question may come back."""
    spec = snapshot.spec
    if spec is None or spec.suspend:
        return StepResult()
    running = [
        (replace(spec, pools=(pool,)), run)
        for pool in spec.pools
        for run in (Run(manifest=manifest) for manifest in snapshot.owned("BenchmarkRun", pool.name))
        if run.under_way
    ]
    outdated = [run for one_pool, run in running if not _may_answer(snapshot, one_pool, run, now)]
    return StepResult(actions=supersede(snapshot.owner, outdated))


def _may_answer(snapshot: Snapshot, one_pool: DeploymentSpec, run: Run, now: datetime) -> bool:
    """Whether the pool's question is the run's own with every model at the commit that the run has measured. A run does
    not name the revision of a dataset, so datasets are matched by source only."""
    try:
        measured = api.run(run.manifest)
    except api.InvalidManifestError:  # of another release: keep it
        return True
    as_measured = replace(one_pool, server=measured.server, pools=(replace(one_pool.pools[0], arms=measured.arms),))
    models = {key_of(model): model.commit for model in models_of(as_measured)}
    files = {load.dataset.source: load.dataset.commit for load in measured.workloads if load.dataset.commit}
    commits = {key: commit for key, commit in models.items() if commit}
    commits |= {key_of(data): files[data.source] for data in datasets_of(one_pool) if data.source in files}
    if any(key_of(artifact) not in commits for artifact in artifacts_of(one_pool)):
        return False
    (pool,) = pools(snapshot, pin(one_pool, commits), now)
    return pool.question == run.question
