"""The servers stay as they are until the image of the next ones is on their nodes."""

from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.lasting import report_lasting
from paceline.plan.deployment.pull import Pull, pull_jobs
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.server_manifest import as_they_are, server_manifest
from paceline.plan.deployment.servers import with_spec_field
from paceline.plan.step import Action, Apply, Delete, StepResult, earliest


def pull_images(rollout: Rollout, now: datetime) -> StepResult:
    """Block while an image is pulled; where it cannot be, a person must act. The Jobs go once nothing is pulled."""
    pool = rollout.pool
    names = {pull.wanted["metadata"]["name"] for pull in rollout.pulls}
    spare = tuple(
        Delete(job, "no server waits for its image") for job in pull_jobs(pool) if job["metadata"]["name"] not in names
    )
    missing = [pull for pull in rollout.pulls if pull.problem]
    if not missing:
        return StepResult(actions=spare)
    make = tuple(
        Apply(pull.wanted, f"pull {pull.image} on {pull.node} before a server there ends")
        for pull in rollout.pulls
        if pull.job is None
    )
    lasting = [report_lasting(pool.snapshot, pull.problem, pool.name, now) for pull in missing]
    stalled = next((result.causes for result in lasting if result.causes), ())
    times = [pull.problem.final for pull in missing if pull.problem and pull.problem.final]
    return StepResult(
        causes=_causes(rollout, missing) or stalled or (Cause(Reason.RollingOut, pool.name, _says(missing[0])),),
        actions=(*_as_before(rollout, now), *make, *spare),  # a refused Job ends the pool's writes
        blocks=True,
        requeue_at=earliest((*(at for at in times if at > now), *(result.requeue_at for result in lasting))),
    )


def _causes(rollout: Rollout, missing: list[Pull]) -> tuple[Cause, ...]:
    """Stalled where an image cannot be pulled, with the kubelet's words and the field."""
    pool = rollout.pool
    failed = next((pull for pull in missing if pull.problem and pull.problem.fatal), None)
    if failed is None:
        return ()
    problem = with_spec_field(pool.snapshot, failed.problem)
    said = _says(replace(failed, problem=problem))
    return (Cause(Reason.ImageNotPulled, pool.name, f"{said}; correct it, and the roll-out goes on"),)


def _says(pull: Pull) -> str:
    return f"{pull.image} on {pull.node}: {pull.problem.message.rstrip('.') if pull.problem else ''}"


def _as_before(rollout: Rollout, now: datetime) -> tuple[Action, ...]:
    """What serves is put back if it was changed, and has as many servers as are asked for."""
    pool, servers = rollout.pool, rollout.pool.servers
    kept = pool.kept.get(servers.revision) if servers else None
    if servers is None or kept is None:
        return ()
    goal = as_they_are(servers, kept["data"])
    manifest = server_manifest(pool.snapshot.owner, pool.deployment, pool.spec, pool.remembered, servers, goal, now)
    return (Apply(manifest, "serve as before until the image of the next servers is pulled"),)
