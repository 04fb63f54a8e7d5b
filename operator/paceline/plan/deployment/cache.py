"""The models, and prompts of the hub, are on the cache volume, pinned to commits."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api import Cause, Reason
from paceline.api.status import DatasetStatus, ModelStatus
from paceline.core import Dataset, DeploymentSpec, Model
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL
from paceline.plan.deployment.lost import COMMIT, read_back
from paceline.plan.deployment.snapshot import Snapshot, datasets_of, models_of, to_bring, told
from paceline.plan.deployment.stuck import lasting
from paceline.plan.objects import Object, condition, finished, owned_by
from paceline.plan.pods import Trouble, last_line, of_job, terminated
from paceline.plan.step import Action, Apply, Delete, StepResult, parse_time, timestamp
from paceline.preflight import Fetched, FetchedModel, ModelFacts, read_facts, read_message, write_facts
from paceline.render import fetch_job, fetch_name
from paceline.render.cache import A_PERSON_MUST_ACT, ROOM, fetch_inputs

NOT_STARTED = (Reason.PodRefused, Reason.Unplaceable, Reason.CannotStart, Reason.NoCapacity)
SPEAKING = ("Pending", "Running")
"""Phases of a pod that may still say what it found. One that was evicted never will, whatever its containers say."""
RETRY_AFTER = timedelta(minutes=5)
"""From a failure that a person need not end, a hub that was down for instance, to the next Job."""


def fetch(snapshot: Snapshot, now: datetime) -> StepResult:
    """One Job for target, heads and datasets; what it found is pinned in status and never asked again."""
    if snapshot.spec is None:
        return StepResult()
    if going := _going(snapshot, snapshot.spec, now):
        return going
    if lost := lost_volume(snapshot):
        causes = (Cause(Reason.Fetching, None, lost), Cause(Reason.Prefetching, None, lost))
        gone = tuple(Delete(job, lost) for job in _jobs(snapshot))
        return StepResult(causes=causes, actions=gone, status={"models": []}, blocks=True)
    if fetched := _fetched(snapshot):
        return StepResult(causes=(Cause(Reason.Cached),), status=_record(snapshot, fetched))
    if commits(snapshot) is not None:
        return StepResult(causes=(Cause(Reason.Cached),), status=_as_recorded(snapshot, snapshot.spec))
    job = _job(snapshot)
    if job and (failed := condition(job, "Failed")):
        return _with_more_room(snapshot.spec, job) or _failed(snapshot, job, failed, now)
    actions = _fetch(snapshot, snapshot.spec, job, now)
    waiting = _trouble(snapshot, snapshot.spec, job, now)
    if waiting and waiting.says in NOT_STARTED:
        said = lasting(snapshot, waiting, None, now)
        waits = (Cause(Reason.FetchWaits, None, waiting.what), Cause(Reason.PrefetchWaiting, None, waiting.what))
        return replace(said, causes=(*said.causes, *waits), actions=actions, blocks=True)
    note = waiting.what if waiting else ", ".join(one.source for one in to_bring(snapshot.spec))
    causes = (Cause(Reason.Fetching, None, note), Cause(Reason.Prefetching, None, note))
    return StepResult(causes=causes, actions=actions, blocks=True)


def _going(snapshot: Snapshot, spec: DeploymentSpec, now: datetime) -> StepResult | None:
    """Of a claim that is being deleted, which nothing takes back. Kubernetes keeps it for every pod with a node that
    names it, one that has ended too (pkg/controller/volume/pvcprotection, podUsesPVC). Ours of the prefetch go at once;
    a server's and a round's a person must end, for the one serves and the other has logs."""
    name = spec.server.cache.claim
    found = snapshot.child("PersistentVolumeClaim", name) if name else None
    since = found["metadata"].get("deletionTimestamp") if found else None
    if since is None:
        return None
    then = "it is then made again and filled" if spec.cache_claim else "make it again then, and it is filled"
    what = (
        f"claim {name} is being deleted since {since}, so no server or round starts; Kubernetes keeps it while pods "
        "name it, those that have ended too: "
        f"kubectl delete pods -l {DEPLOYMENT_LABEL}={snapshot.name} ends its servers, "
        f"kubectl delete jobs -l {COMPONENT_LABEL}=round the namespace's rounds (results that are read stay); {then}"
    )
    said = lasting(snapshot, Trouble(what=what, says=Reason.Unplaceable, since=parse_time(since)), None, now)
    return replace(
        said,
        causes=(*said.causes, Cause(Reason.FetchWaits, None, what), Cause(Reason.PrefetchWaiting, None, what)),
        actions=tuple(Delete(job, f"it keeps claim {name}") for job in _jobs(snapshot) if _staying(job)),
        status={"models": []},
        blocks=True,
    )


def _staying(job: Object) -> bool:
    return "deletionTimestamp" not in job["metadata"]


def lost_volume(snapshot: Snapshot) -> str:
    """What to say of a claim that was made after the models were brought: somebody has deleted the one that had them,
    and this one is empty. Nothing is pinned then; the commits are read back from what was served."""
    name = snapshot.spec.server.cache.claim if snapshot.spec else None
    found = snapshot.child("PersistentVolumeClaim", name) if name else None
    since = brought(snapshot)
    if found is None or since is None or parse_time(found["metadata"]["creationTimestamp"]) <= since:
        return ""
    return f"claim {name} is another one since {found['metadata']['creationTimestamp']}, and nothing is on it"


def brought(snapshot: Snapshot) -> datetime | None:
    """Since when the models have been there; None while they are not."""
    ready = condition(snapshot.manifest, "CacheReady")
    return parse_time(ready["lastTransitionTime"]) if ready else None


def _trouble(snapshot: Snapshot, spec: DeploymentSpec, job: Object | None, now: datetime) -> Trouble | None:
    """Why the prefetch does not start: its claim's first, of which its pod says less."""
    if job is None or condition(job, "Complete"):
        return None
    named = spec.cache_claim.name if spec.cache_claim else ""
    volume = snapshot.child("PersistentVolumeClaim", named) or {}
    words = snapshot.warnings.get(volume.get("metadata", {}).get("uid", ""))
    if words and (volume.get("status") or {}).get("phase") == "Pending":
        made = parse_time(volume["metadata"]["creationTimestamp"])
        found = Trouble(what=f"claim {named} is not provided: {words}", says=Reason.Unplaceable, since=made)
        return told(snapshot, found)
    return told(snapshot, of_job(job, _pods(snapshot, job), snapshot.warnings, now))


def _fetch(snapshot: Snapshot, spec: DeploymentSpec, job: Object | None, now: datetime) -> tuple[Action, ...]:
    """A Job that has ended and said nothing that can be read, its pod gone or of another release, runs again."""
    if job is None:
        known = {**read_back(snapshot, spec, now), **_recorded(snapshot)}
        wanted = fetch_job(
            snapshot.owner,
            spec.server,
            tuple(replace(model, commit=known.get(_key(model))) for model in models_of(spec)),
            snapshot.settings,
            datasets=tuple(replace(dataset, commit=known.get(_key(dataset))) for dataset in datasets_of(spec)),
            keep_revisions=spec.keep_revisions,
            in_use=_in_use(snapshot),
            room=spec.cache_claim.size if spec.cache_claim else "",
        )
        return (
            *(Delete(old, "the spec has changed") for old in _jobs(snapshot)),
            Apply(wanted, f"download {', '.join(one.source for one in to_bring(spec))}"),
        )
    if condition(job, "Complete") and not any(pod["status"].get("phase") in SPEAKING for pod in _pods(snapshot, job)):
        return (Delete(job, "its result is lost; the models are on the volume, so this is quick"),)
    return ()


def commits(snapshot: Snapshot) -> Mapping[tuple[str, str], str] | None:
    """Source and revision → commit, from the Job that has just ended or from status; None before either."""
    if snapshot.spec is None:
        return None
    if fetched := _fetched(snapshot):
        return {_key(one): one.commit for one in (*fetched.models, *fetched.datasets)}
    known = _recorded(snapshot)
    return known if all(_key(one) in known for one in to_bring(snapshot.spec)) else None


def _recorded(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """Of what status has pinned, what holds still: all models while they and their place are the same, and every
    dataset by itself. So models do not move because prompts are changed, nor prompts because another head is."""
    models = snapshot.status.models if snapshot.status.models_hash == _inputs(snapshot) else ()
    return {_key(one): one.commit for one in (*models, *snapshot.status.datasets)}


def _key(one: Model | Dataset | FetchedModel | DatasetStatus) -> tuple[str, str]:
    return one.source, one.revision


def facts(snapshot: Snapshot) -> Mapping[str, ModelFacts]:
    """By source, what a prefetch of these very models saw: from its Job, and from status once that is gone. Empty
    before either, and where the spec cannot be read."""
    if snapshot.spec is None:
        return {}
    wanted = {(model.source, model.revision) for model in models_of(snapshot.spec)}
    seen = (_read(pod) for job in _jobs(snapshot) for pod in _pods(snapshot, job))
    for found in seen:
        if found and wanted == {(m.source, m.revision) for m in found.models}:
            return found.facts
    recorded = snapshot.status.models
    if wanted != {_key(model) for model in recorded}:
        return {}
    known = {model.source: _of_status(model.facts) for model in recorded if model.facts}
    return {source: found for source, found in known.items() if found}


def _of_status(text: str) -> ModelFacts | None:
    """None for what is believed no more: an older release took whatever a config.json says."""
    with suppress(TypeError, ValueError):
        return read_facts(json.loads(text))
    return None


def _in_use(snapshot: Snapshot) -> tuple[str, ...]:
    """Every commit that is named in what serves, in what may be returned to, and in what is being measured."""
    kinds = ("ControllerRevision", "Deployment", "LeaderWorkerSet")
    runs = (run for run in snapshot.of("BenchmarkRun") if not finished(run))
    named = [child["spec"] if "spec" in child else child["data"] for kind in kinds for child in snapshot.of(kind)]
    pinned = [one.commit for one in (*snapshot.status.models, *snapshot.status.datasets)]
    text = json.dumps([*named, *(run["spec"] for run in runs), pinned])
    return tuple(sorted(set(COMMIT.findall(text))))


def _inputs(snapshot: Snapshot) -> str:
    assert snapshot.spec is not None
    return fetch_inputs(snapshot.spec.server, models_of(snapshot.spec))


def _job(snapshot: Snapshot) -> Object | None:
    assert snapshot.spec is not None
    spec = snapshot.spec
    return snapshot.child("Job", fetch_name(snapshot.owner, spec.server, models_of(spec), datasets_of(spec)))


def _jobs(snapshot: Snapshot) -> list[Object]:
    """Every prefetch of this deployment, also of what was asked before."""
    return [
        job
        for job in snapshot.of("Job")
        if job["metadata"].get("labels", {}).get(COMPONENT_LABEL) == "fetch" and owned_by(job, snapshot.owner.uid)
    ]


def _pods(snapshot: Snapshot, job: Object | None) -> list[Object]:
    name = job["metadata"]["name"] if job else None
    return [
        pod
        for pod in snapshot.of("Pod")
        if pod["metadata"].get("labels", {}).get(DEPLOYMENT_LABEL) == snapshot.name
        and pod["metadata"]["labels"].get("batch.kubernetes.io/job-name") == name
    ]


def _fetched(snapshot: Snapshot) -> Fetched | None:
    job = _job(snapshot)
    if job is None or condition(job, "Complete") is None:
        return None
    return next((found for pod in _pods(snapshot, job) if (found := _read(pod))), None)


def _read(pod: Object) -> Fetched | None:
    ended = terminated(pod, "fetch")
    if ended and ended.get("exitCode") == 0:
        with suppress(ValueError):
            return read_message(ended.get("message", ""))
    return None


def _with_more_room(spec: DeploymentSpec, job: Object) -> StepResult | None:
    """A disk that was full is what a person has to end, and a larger claim ends it."""
    had = (job["metadata"].get("annotations") or {}).get(ROOM, "")
    if spec.cache_claim is None or had in ("", spec.cache_claim.size):
        return None
    return StepResult(
        actions=(Delete(job, f"it failed with {had}, and now {spec.cache_claim.size} are asked for"),), blocks=True
    )


def _failed(snapshot: Snapshot, job: Object, failed: Mapping[str, Any], now: datetime) -> StepResult:
    """Where a person must act, what they change makes another Job; anything else is tried again after a while."""
    ends = [ended for pod in _pods(snapshot, job) if (ended := terminated(pod, "fetch"))]
    ends.sort(key=lambda ended: str(ended.get("finishedAt", "")), reverse=True)
    said = (last_line(ended.get("message", "")) for ended in ends)
    note = next((line for line in said if line), failed.get("message", "the prefetch failed"))
    final = failed.get("reason") == "PodFailurePolicy" or any(e.get("exitCode") == A_PERSON_MUST_ACT for e in ends)
    again = None if final else parse_time(failed["lastTransitionTime"]) + RETRY_AFTER
    if again is None:
        note = _with_field(snapshot, note)
        note += f" (fixed without a change of the spec? delete Job {job['metadata']['name']})"
    else:
        note += f" (tried again at {timestamp(again)})"
    due = again is not None and again <= now
    return StepResult(
        causes=(Cause(Reason.FetchFailed, None, note), Cause(Reason.PrefetchFailed, None, note)),
        actions=(Delete(job, "it failed some time ago and is tried again"),) if due else (),
        blocks=True,
        requeue_at=None if due else again,
    )


def _with_field(snapshot: Snapshot, line: str) -> str:
    """A prefetch knows sources; a person wants the field of the spec that names the one it speaks of."""
    written = snapshot.manifest["spec"]
    drafts = {"spec.target": written["target"], "spec.draft": written.get("draft") or {}}
    drafts |= {
        f"spec.pools[{i}].candidates[{j}].draft": candidate.get("draft") or {}
        for i, pool in enumerate(written["pools"])
        for j, candidate in enumerate(pool["candidates"])
    }
    prompts = {
        f"spec.benchmark.datasets[{i}]": dataset
        for i, dataset in enumerate((written.get("benchmark") or {}).get("datasets") or ())
    }
    field = ".revision" if ": no revision " in line else ".source"
    named = {**drafts, **prompts}
    place = next((path for path, one in named.items() if line.startswith(f"{one.get('source')}: ")), None)
    return f"{place}{field}: {line}" if place else line


def _record(snapshot: Snapshot, fetched: Fetched) -> dict[str, Any]:
    return {
        "models_hash": _inputs(snapshot),
        "models": tuple(ModelStatus(**_as_found(one), facts=_facts(fetched, one.source)) for one in fetched.models),
        "datasets": tuple(DatasetStatus(**_as_found(one)) for one in fetched.datasets),
    }


def _as_found(one: FetchedModel) -> dict[str, Any]:
    return {
        "source": one.source,
        "revision": one.revision,
        "commit": one.commit,
        "bytes": one.bytes,
        "path": one.path,
    }


def _facts(fetched: Fetched, source: str) -> str:
    """As text: a status must not need a field of its schema for everything that preflight learns to read."""
    found = fetched.facts.get(source)
    return json.dumps(write_facts(found), separators=(",", ":")) if found else ""


def _as_recorded(snapshot: Snapshot, spec: DeploymentSpec) -> dict[str, Any]:
    """Without datasets that are asked for no more: nothing keeps them on the volume."""
    wanted = {_key(dataset) for dataset in datasets_of(spec)}
    return {
        "models_hash": snapshot.status.models_hash,
        "models": snapshot.status.models,
        "datasets": tuple(one for one in snapshot.status.datasets if _key(one) in wanted),
    }
