"""Puts models and the hub's datasets on the cache volume, each pinned to a commit. The volume's claim is created once,
has no owner, and grows if the spec asks for more."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from paceline.api import Cause, Reason
from paceline.api.status import CachedArtifact
from paceline.core import ClaimTemplate, DeploymentSpec
from paceline.core.manifest import Object
from paceline.core.names import CACHE_LABEL, COMPONENT_LABEL, DEPLOYMENT_LABEL, snapshot_path
from paceline.fetching import FetchedModel, FetchFailure, FetchResult, write_facts
from paceline.plan.deployment.models import COMMIT, Commits, Prefetch, artifacts_of, datasets_of, key_of, models_of, pin
from paceline.plan.deployment.pool import lacks_models, pools
from paceline.plan.deployment.servers import with_spec_field
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.deployment.stalled import report_lasting
from paceline.plan.objects import annotations, condition, finished, owned_by
from paceline.plan.step import Action, Apply, Delete, StepResult, parse_time, timestamp
from paceline.plan.trouble import Trouble, last_line, of_job, terminated
from paceline.render import claim, fetch_job
from paceline.render.cache import A_PERSON_MUST_ACT, ROOM
from paceline.render.serving import REVISION_LABEL

UNITS: dict[str, int | Decimal] = {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGTPE", 1)}}
UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", 1)}
UNITS |= {unit: Decimal(1000) ** -power for power, unit in enumerate("mun", 1)}
NOT_STARTED = (Reason.PodRefused, Reason.Unplaceable, Reason.CannotStart, Reason.NoCapacity)
REPORTING = ("Pending", "Running")
"""Phases of a pod that may still report a result. An evicted pod never will, even if its containers ended well."""
RETRY_AFTER = timedelta(minutes=5)
"""Delay from a failure that may pass by itself, such as the hub's, to the next Job."""


def fetch_models(snapshot: Snapshot, now: datetime) -> StepResult:
    """Run one Job for target, heads and datasets. Its commits are kept in status and not resolved again."""
    prefetch = snapshot.prefetch
    if prefetch is None:
        return StepResult()
    if deleting := _claim_in_deletion(snapshot, prefetch, now):
        return deleting
    if lost := _lost_volume(snapshot, prefetch):
        causes = (Cause(Reason.Fetching, None, lost), Cause(Reason.Prefetching, None, lost))
        actions = tuple(Delete(job, lost) for job in prefetch.jobs)
        return StepResult(causes=causes, actions=actions, status=_NOWHERE, blocks=True)
    if not prefetch.missing:
        return StepResult(
            causes=(Cause(Reason.Cached),),
            status=_reported(prefetch, prefetch.report) if prefetch.report else {},
        )
    job = prefetch.job
    if job and (failed := condition(job, "Failed")):
        step = _retry_with_larger_claim(prefetch, job) or _failed(snapshot, prefetch.pods(job), job, failed, now)
    else:
        step = _download(snapshot, prefetch, now)
    return replace(step, blocked_pools=lacks_models(prefetch.spec, prefetch.missing))


def ensure_claim(snapshot: Snapshot, _: datetime) -> StepResult:
    """Create or grow the claim. It has no owner, because models outlive their deployments. Deployments may share it: it
    has the largest size that any of them asks for, and never shrinks. The API server refuses to grow it if its
    StorageClass does not allow that (Stalled, Refused)."""
    spec = snapshot.spec
    if spec is None or spec.cache_claim is None:
        return StepResult()
    template = spec.cache_claim
    existing = snapshot.child("PersistentVolumeClaim", template.name)
    if existing is None:
        return StepResult(actions=(Apply(claim(snapshot.namespace, template), "the models need a volume"),))
    if existing["metadata"].get("labels", {}).get(CACHE_LABEL) != "true":
        note = f"claim {template.name} is not a Paceline cache; name it in cache.claimName to use it"
        return StepResult(causes=(Cause(Reason.NameConflict, None, note),), blocks=True)
    if bytes_of(template.size) > bytes_of(size(existing)):
        why = f"the spec asks for {template.size}, not {size(existing)}"
        return StepResult(actions=(Apply(_grown(snapshot, template, existing), why),))
    return StepResult(notes=tuple(_differences(template, existing)))


def size(existing: Object) -> str:
    """The size that the claim requests."""
    return str(existing["spec"]["resources"]["requests"]["storage"])


def bytes_of(quantity: str) -> Decimal:
    """Bytes of a quantity in any API notation: another tool's claim may ask for 107374182400m."""
    number = quantity.rstrip("numkKMGTPEi")
    return Decimal(number) * Decimal(UNITS[quantity.removeprefix(number)])


def _grown(snapshot: Snapshot, template: ClaimTemplate, existing: Object) -> dict[str, object]:
    """The claim with only its size changed: Kubernetes refuses every other change."""
    wanted = claim(snapshot.namespace, template)
    kept = {key: existing["spec"][key] for key in ("accessModes", "storageClassName") if key in existing["spec"]}
    return wanted | {"spec": wanted["spec"] | kept}


def _differences(template: ClaimTemplate, existing: Object) -> Iterator[str]:
    """A sentence for each field that has another value, set by another deployment or an earlier spec."""
    spec = existing["spec"]
    modes, class_name = ", ".join(sorted(template.access_modes)), template.storage_class_name
    existing_modes = ", ".join(sorted(spec.get("accessModes", template.access_modes)))
    fields = {
        "size": (template.size, size(existing), bytes_of(template.size) == bytes_of(size(existing))),
        "storageClassName": (
            class_name,
            spec.get("storageClassName"),
            class_name in (None, spec.get("storageClassName")),
        ),
        "accessModes": (modes, existing_modes, modes == existing_modes),
    }
    for field, (wanted, has, same) in fields.items():
        if not same:
            yield f"spec.cache.claim.{field} is {wanted}, but claim {template.name} has {has}, which cannot be changed"


def _download(snapshot: Snapshot, prefetch: Prefetch, now: datetime) -> StepResult:
    """Create the Job, or wait for it; reports why it does not start."""
    actions = _actions(snapshot, prefetch, now)
    waiting = _why_it_waits(snapshot, prefetch, now)
    if waiting and waiting.reason in NOT_STARTED:
        return replace(_waits(snapshot, waiting, now), actions=actions)
    note = waiting.message if waiting else ", ".join(artifact.source for artifact in artifacts_of(prefetch.spec))
    causes = (Cause(Reason.Fetching, None, note), Cause(Reason.Prefetching, None, note))
    return StepResult(causes=causes, actions=actions)


def _waits(snapshot: Snapshot, problem: Trouble, now: datetime) -> StepResult:
    stalled = report_lasting(snapshot, problem, None, now)
    waits = (Cause(Reason.FetchWaits, None, problem.message), Cause(Reason.PrefetchWaiting, None, problem.message))
    return replace(stalled, causes=(*stalled.causes, *waits))


def _claim_in_deletion(snapshot: Snapshot, prefetch: Prefetch, now: datetime) -> StepResult | None:
    """Wait while the claim is being deleted, which cannot be undone. Kubernetes keeps it while any scheduled pod names
    it, even one that has ended (pkg/controller/volume/pvcprotection, podUsesPVC). Our prefetch's pods are deleted at
    once; a person must end the pods of servers, which serve, and of rounds, which have logs."""
    claim = _claim(snapshot, prefetch)
    since = claim["metadata"].get("deletionTimestamp") if claim else None
    if claim is None or since is None:
        return None
    name = claim["metadata"]["name"]
    then = "it is then made again and filled" if prefetch.spec.cache_claim else "then make it again, and it is filled"
    message = (
        f"claim {name} is being deleted (since {since}), so no server or round starts; Kubernetes keeps it while "
        f"pods name it, finished pods too: kubectl delete pods -l {DEPLOYMENT_LABEL}={snapshot.name} stops its "
        f"servers, kubectl delete jobs -l {COMPONENT_LABEL}=round the namespace's rounds (results already read "
        f"stay); {then}"
    )
    problem = Trouble(message=message, reason=Reason.Unplaceable, since=parse_time(since))
    return replace(
        _waits(snapshot, problem, now),
        actions=tuple(
            Delete(job, f"it keeps claim {name}") for job in prefetch.jobs if "deletionTimestamp" not in job["metadata"]
        ),
        status=_NOWHERE,
        blocks=True,
    )


def _claim(snapshot: Snapshot, prefetch: Prefetch) -> Object | None:
    name = prefetch.spec.server.cache.claim
    return snapshot.child("PersistentVolumeClaim", name) if name else None


def _lost_volume(snapshot: Snapshot, prefetch: Prefetch) -> str:
    """A message if the claim is younger than the download: someone deleted the previous claim, and this one is empty.
    Nothing is pinned then; the commits are read back from served revisions."""
    claim, since = _claim(snapshot, prefetch), snapshot.cached_since
    if claim is None or since is None or parse_time(claim["metadata"]["creationTimestamp"]) <= since:
        return ""
    made = claim["metadata"]["creationTimestamp"]
    return f"claim {claim['metadata']['name']} was replaced at {made} and is empty"


def _why_it_waits(snapshot: Snapshot, prefetch: Prefetch, now: datetime) -> Trouble | None:
    """Why the Job does not start: its claim's problem first, because it causes the pod's."""
    job = prefetch.job
    if job is None or condition(job, "Complete"):
        return None
    name = prefetch.spec.cache_claim.name if prefetch.spec.cache_claim else ""
    claim = snapshot.child("PersistentVolumeClaim", name) or {}
    warning = snapshot.warnings.get(claim.get("metadata", {}).get("uid", ""))
    if warning and (claim.get("status") or {}).get("phase") == "Pending":
        made = parse_time(claim["metadata"]["creationTimestamp"])
        message = f"claim {name} is not provisioned: {warning}"
        return with_spec_field(snapshot, Trouble(message=message, reason=Reason.Unplaceable, since=made))
    return with_spec_field(snapshot, of_job(job, prefetch.pods(job), snapshot.warnings, now))


def _actions(snapshot: Snapshot, prefetch: Prefetch, now: datetime) -> tuple[Action, ...]:
    """Create the Job; or delete a finished one whose result is unreadable, because its pod is gone or of another
    release."""
    spec, job = prefetch.spec, prefetch.job
    if job is None:
        commits = known_commits(snapshot, now)
        wanted = fetch_job(
            snapshot.owner,
            spec.server,
            tuple(replace(model, commit=commits.get(key_of(model))) for model in models_of(spec)),
            snapshot.settings,
            datasets=tuple(replace(dataset, commit=commits.get(key_of(dataset))) for dataset in datasets_of(spec)),
            keep_revisions=spec.keep_revisions,
            in_use=_commits_in_use(snapshot),
            room=spec.cache_claim.size if spec.cache_claim else "",
        )
        return (
            *(Delete(old, "the spec has changed") for old in prefetch.jobs),
            Apply(wanted, f"download {', '.join(artifact.source for artifact in artifacts_of(spec))}"),
        )
    if condition(job, "Complete") and not any(pod["status"].get("phase") in REPORTING for pod in prefetch.pods(job)):
        return (Delete(job, "its result is lost; the models are on the volume, so this is quick"),)
    return ()


def _commits_in_use(snapshot: Snapshot) -> tuple[str, ...]:
    """Every commit that is served, kept for a return, or being measured."""
    kinds = ("ControllerRevision", "Deployment", "LeaderWorkerSet")
    running = [run["spec"] for run in snapshot.of("BenchmarkRun") if not finished(run)]
    rendered = [child["spec"] if "spec" in child else child["data"] for kind in kinds for child in snapshot.of(kind)]
    pinned = [artifact.commit for artifact in snapshot.status.artifacts]
    return tuple(sorted(set(COMMIT.findall(json.dumps([*rendered, *running, pinned])))))


def _retry_with_larger_claim(prefetch: Prefetch, job: Object) -> StepResult | None:
    """Only a person can fix a full disk, for example by a larger claim in the spec."""
    size, claim = annotations(job).get(ROOM, ""), prefetch.spec.cache_claim
    if claim is None or size in ("", claim.size):
        return None
    return StepResult(actions=(Delete(job, f"it failed with {size}, but the spec now asks for {claim.size}"),))


def _failed(
    snapshot: Snapshot, pods: Iterable[Object], job: Object, failed: Mapping[str, Any], now: datetime
) -> StepResult:
    """If a person must act, their change creates another Job; every other failure is retried after a while."""
    ends = [ended for pod in pods if (ended := terminated(pod, "fetch"))]
    ends.sort(key=lambda ended: str(ended.get("finishedAt", "")), reverse=True)
    failures = (FetchFailure.from_message(ended.get("message", "")) for ended in ends)
    failure = next((each for each in failures if last_line(each.sentence)), None)
    note = last_line(failure.sentence) if failure else failed.get("message", "the prefetch failed")
    final = failed.get("reason") == "PodFailurePolicy" or any(e.get("exitCode") == A_PERSON_MUST_ACT for e in ends)
    again = None if final else parse_time(failed["lastTransitionTime"]) + RETRY_AFTER
    if again is None:
        field = _field(snapshot, failure) if failure else ""
        note = f"{field}: {note}" if field else note
        note += f" (if you fix it outside the spec, delete Job {job['metadata']['name']} to try again)"
    else:
        note += f" (tried again at {timestamp(again)})"
    due = again is not None and again <= now
    return StepResult(
        causes=(Cause(Reason.FetchFailed, None, note), Cause(Reason.PrefetchFailed, None, note)),
        actions=(Delete(job, "it failed some time ago and is tried again"),) if due else (),
        requeue_at=None if due else again,
    )


def _field(snapshot: Snapshot, failure: FetchFailure) -> str:
    """The first field of the spec that names the failed source, for a person to change; "" if none does."""
    written = snapshot.manifest["spec"]
    artifacts = {"spec.target": written["target"], "spec.draft": written.get("draft") or {}}
    artifacts |= {
        f"spec.candidates[{i}].draft": candidate.get("draft") or {}
        for i, candidate in enumerate(written.get("candidates") or ())
    }
    artifacts |= {
        f"spec.benchmark.datasets[{i}]": dataset
        for i, dataset in enumerate((written.get("benchmark") or {}).get("datasets") or ())
    }
    paths = (
        path for path, artifact in artifacts.items() if failure.source and artifact.get("source") == failure.source
    )
    return next((f"{path}.{failure.part}" for path in paths), "")


def _reported(prefetch: Prefetch, report: FetchResult) -> dict[str, Any]:
    """Fields of status, from the Job's report."""
    fetched = (_artifact(report, one) for one in (*report.models, *report.datasets))
    return {"volume": prefetch.volume, "artifacts": tuple(fetched)}


def _artifact(report: FetchResult, fetched: FetchedModel) -> CachedArtifact:
    facts = report.facts.get(fetched.source)
    source, revision, commit = fetched.source, fetched.revision, fetched.commit
    return CachedArtifact(source=source, revision=revision, commit=commit, facts=write_facts(facts) if facts else {})


_NOWHERE = {"volume": ""}
"""Fields of status once the volume has been replaced: the commits stay known."""


def known_commits(snapshot: Snapshot, now: datetime) -> Commits:
    """Commits from status and prefetch; if status has no model, also those that runs name or kept revisions prove."""
    prefetch = snapshot.prefetch
    if prefetch is None:
        return {}
    lost = all(artifact.is_dataset for artifact in snapshot.status.artifacts)
    return {**(read_back(snapshot, prefetch.spec, now) if lost else {}), **prefetch.known}


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
