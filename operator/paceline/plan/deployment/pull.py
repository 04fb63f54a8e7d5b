"""Pulls the image of a pool's next servers onto the nodes of the present ones before any of these ends.

So a wrong tag causes no outage, and a server replaced in place loses only the time to load its model. Only a changed
image is pulled; a promotion changes only arguments. Nodes that take no pod, or whose Job fails, are not waited for:
waiting would show nothing, and the next server would not start there either. The same holds for a Job that the API
server refuses, by a quota or a webhook.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api import Cause, Reason
from paceline.core.manifest import Manifest, Object
from paceline.core.names import COMPONENT_LABEL
from paceline.engines.pod_template import SERVER
from paceline.plan.deployment.choose import Choice, Rollout
from paceline.plan.deployment.holds import held
from paceline.plan.deployment.models import JOB_NAME
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.servers import pod_template, with_spec_field
from paceline.plan.deployment.stalled import report_lasting
from paceline.plan.deployment.workload import as_they_are, rendered, server_manifest
from paceline.plan.objects import finished
from paceline.plan.step import Action, Apply, Delete, StepResult, earliest, parse_time
from paceline.plan.trouble import STARTING, Trouble, container, placed_at, trouble, unplaced
from paceline.render.pull import COMPONENT, pull_job

IMAGE_PATIENCE = timedelta(minutes=1)
"""Maximum time for a node to accept the pod."""
NOT_PULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                        "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"})  # fmt: skip
"""Reasons of a waiting container without its image (Kubernetes, pkg/kubelet/images/types.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The image of the next servers on one node. `job`: the existing one; `wanted`: the desired one. `problem`: why the
    image may still be missing; None once it is present, or once waiting is of no use."""

    node: str
    image: str
    wanted: Manifest
    job: Object | None
    problem: Trouble | None


def pull_images(rollout: Rollout, now: datetime) -> StepResult:
    """Block while an image is pulled; if it cannot be, a person must act. Delete Jobs that are no longer needed."""
    pool = rollout.pool
    pulls = _pulls(pool, rollout.choice, now)
    names = {pull.wanted["metadata"]["name"] for pull in pulls}
    spare = tuple(
        Delete(job, "no server waits for its image") for job in _pull_jobs(pool) if job["metadata"]["name"] not in names
    )
    missing = [pull for pull in pulls if pull.problem]
    if not missing:
        return StepResult(actions=spare)
    make = tuple(
        Apply(pull.wanted, f"pull {pull.image} on {pull.node} before a server there stops")
        for pull in pulls
        if pull.job is None
    )
    lasting = [report_lasting(pool.snapshot, pull.problem, pool.name, now) for pull in missing]
    stalled = next((result.causes for result in lasting if result.causes), ())
    times = [pull.problem.final for pull in missing if pull.problem and pull.problem.final]
    return StepResult(
        causes=_causes(rollout, missing) or stalled or (Cause(Reason.RollingOut, pool.name, _says(missing[0])),),
        actions=(*_as_before(pool), *make, *spare),  # in this order, because a refused Job ends the pool's writes
        blocks=True,
        requeue_at=earliest((*(at for at in times if at > now), *(result.requeue_at for result in lasting))),
    )


def is_pulling(rollout: Rollout, now: datetime) -> bool:
    """Whether the servers stay unchanged until an image has been pulled."""
    return any(pull.problem for pull in _pulls(rollout.pool, rollout.choice, now))


def _causes(rollout: Rollout, missing: list[Pull]) -> tuple[Cause, ...]:
    """Stalled if an image cannot be pulled, with the kubelet's message and the field."""
    pool = rollout.pool
    failed = next((pull for pull in missing if pull.problem and pull.problem.fatal), None)
    if failed is None:
        return ()
    problem = with_spec_field(pool.snapshot, failed.problem)
    said = _says(replace(failed, problem=problem))
    return (Cause(Reason.ImageNotPulled, pool.name, f"{said}; correct it, and the roll-out continues"),)


def _says(pull: Pull) -> str:
    return f"{pull.image} on {pull.node}: {pull.problem.message.rstrip('.') if pull.problem else ''}"


def _as_before(pool: Pool) -> tuple[Action, ...]:
    """Restore changed servers to what serves, with the requested number of replicas."""
    servers = pool.servers
    kept = pool.kept.get(servers.revision) if servers else None
    if servers is None or kept is None:
        return ()
    manifest = server_manifest(pool, as_they_are(servers, kept["data"]))
    return (Apply(manifest, "serve as before until the image of the next servers is pulled"),)


def _pulls(pool: Pool, choice: Choice, now: datetime) -> tuple[Pull, ...]:
    """A Pull for each node with a server that is replaced by one with another image. There is none if no serving server
    is at risk: at the first start, if the present servers do not run, or if their roll-out was given up."""
    servers, serving = pool.servers, pool.remembered.serving
    if servers is None or serving is None or servers.revision == choice.revision:
        return ()
    given_up = held(pool, servers.revision)
    if given_up and (given_up.reason in ("NotReady", "Crashed") or serving.revision != servers.revision):
        return ()
    rendering = rendered(pool, choice)
    if rendering is None:
        return ()
    template: Manifest = rendering["template"]
    after = _server(template)
    if _image_of(template) == _image_of(pod_template(servers.manifest)) or after.get("imagePullPolicy") == "Never":
        return ()
    found = tuple(_pull(pool, template, node, now) for node in sorted(servers.nodes))
    # After the first refusal the pool writes no more Jobs: a quota or webhook that refuses one refuses all.
    refused = any(("Job", pull.wanted["metadata"]["name"]) in pool.snapshot.refusals for pull in found)
    return tuple(replace(pull, problem=None) if refused and pull.job is None else pull for pull in found)


def _image_of(template: Mapping[str, Any]) -> str:
    """The server's image."""
    return str(_server(template)["image"])


def _pull_jobs(pool: Pool) -> list[Object]:
    return [
        job for job in pool.snapshot.owned("Job", pool.name) if job["metadata"]["labels"][COMPONENT_LABEL] == COMPONENT
    ]


def _pull(pool: Pool, template: Manifest, node: str, now: datetime) -> Pull:
    wanted = pull_job(pool.snapshot.owner, pool.name, template, node)
    job = next((job for job in _pull_jobs(pool) if job["metadata"]["name"] == wanted["metadata"]["name"]), None)
    problem = _problem(pool, job, now) if job else Trouble(message="it has not begun")
    return Pull(node=node, image=_image_of(template), wanted=wanted, job=job, problem=problem)


def _problem(pool: Pool, job: Object, now: datetime) -> Trouble | None:
    pods = list(_pods(pool, job))
    if finished(job) or any(map(_has_image, pods)):
        return None
    if not pods:
        return _unless_over(parse_time(job["metadata"]["creationTimestamp"]), "it has no pod yet", now)
    waiting = next((problem for pod in pods if (problem := unplaced(pod))), None)
    if waiting:
        began = waiting.since or parse_time(job["metadata"]["creationTimestamp"])
        return _unless_over(began, waiting.message, now)
    since = next((at for pod in pods if (at := placed_at(pod))), None)
    found = trouble(pods, pool.snapshot.warnings, now)
    under_way = Trouble(message="it is under way", reason=Reason.CannotStart, since=since)
    return replace(found, reason=Reason.CannotStart) if found else under_way


def _unless_over(began: datetime, message: str, now: datetime) -> Trouble | None:
    end = began + IMAGE_PATIENCE
    return Trouble(message=message, final=end) if now < end else None


def _has_image(pod: Object) -> bool:
    """Whether its container has run, or waits for something other than its image."""
    status = container(pod, COMPONENT)
    waiting: Any = status.get("state", {}).get("waiting")
    if waiting is None:
        return bool(status.get("state"))
    return waiting.get("reason", STARTING[0]) not in {*NOT_PULLED, *STARTING}


def _pods(pool: Pool, job: Object) -> Iterator[Object]:
    for pod in pool.snapshot.of("Pod"):
        if pod["metadata"].get("labels", {}).get(JOB_NAME) == job["metadata"]["name"]:
            yield pod


def _server(template: Mapping[str, Any]) -> Object:
    found: Object = next(one for one in template["spec"]["containers"] if one["name"] == SERVER)
    return found
