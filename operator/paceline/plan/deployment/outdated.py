"""Runs whose answer can never be used, known before the models are: while those are brought, or cannot be, no pool is
looked at, and nothing else would end a run of the old question."""

from dataclasses import replace
from datetime import datetime

from paceline import api
from paceline.core import DeploymentSpec
from paceline.core.names import SUPERSEDED
from paceline.plan.deployment.measure import annotated
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Snapshot, children, datasets_of, models_of, pin, pools, to_bring
from paceline.plan.step import Apply, StepResult


def outdated(snapshot: Snapshot, now: datetime) -> StepResult:
    """Whatever commits the models will have. While suspended nothing is given up: the old question may come back."""
    spec = snapshot.spec
    if spec is None or spec.suspend:
        return StepResult()
    going_on = [
        (replace(spec, pools=(pool,)), run)
        for pool in spec.pools
        for run in (Run(found=found) for found in children(snapshot, "BenchmarkRun", pool.name))
        if not run.finished and not run.superseded
    ]
    ending = [run for asked, run in going_on if not _may_answer(snapshot, asked, run, now)]
    return StepResult(
        actions=tuple(Apply(annotated(snapshot.owner, run, SUPERSEDED), "the question has changed") for run in ending)
    )


def _may_answer(snapshot: Snapshot, asked: DeploymentSpec, run: Run, now: datetime) -> bool:
    """Whether the question of its pool would be the run's own if every model turned out to be at the commit that the
    run knows it by. What a dataset's commit was called a run does not say, so of these the source alone counts."""
    try:
        known = api.run(run.found)
    except api.InvalidManifestError:  # of another release: what it asks is not for us to say
        return True
    measured = replace(asked, server=known.server, pools=(replace(asked.pools[0], arms=known.arms),))
    models = {(model.source, model.revision): model.commit for model in models_of(measured)}
    files = {one.dataset.source: one.dataset.commit for one in known.workloads if one.dataset.commit}
    commits = {key: commit for key, commit in models.items() if commit}
    commits |= {(one.source, one.revision): files[one.source] for one in datasets_of(asked) if one.source in files}
    if any((one.source, one.revision) not in commits for one in to_bring(asked)):
        return False
    (pool,) = pools(snapshot, pin(asked, commits), now)
    return pool.question == run.question
