"""What must hold whatever went wrong: the same end as without faults, and promises that no moment of history breaks."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.memory import Cluster
from tests.support.memory.cluster import Change

from paceline.api.round import with_rounds
from paceline.core import BASELINE
from paceline.core.names import POOL_LABEL, RUN_LABEL, child_name
from paceline.kube import APPLIED, Manifest, Ref
from paceline.kube.resources import DEPLOYMENT, EVENT, NAMESPACE, NODE
from paceline.plan.objects import condition
from paceline.render.serving import ARM_LABEL, REVISION_LABEL

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
GPU_NODE = re.compile(r"gpu-\d")
LINES_OF_A_RUN = re.compile(r"(/results/[^/]+/)[^/\"]+")
"""Where rounds leave their lines: below a run's name its uid."""
KERNELS = re.compile(r"(jit/[^/]+/)[^/\"]+")
"""Where servers keep what they compile: below a namespace their owner's uid."""
SERVERS = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "batch.kubernetes.io/controller-uid")
LENGTHS = ("heldSeconds", "idleSeconds", "gpuSeconds", "idleGpuSeconds")
MASKED = frozenset((*SERVERS, APPLIED, "terminated", "nodeAffinity", *LENGTHS))
"""Differ between two worlds where the same was done. APPLIED is a hash that covers the owner's uid, a round that has
terminated says when it began, how long it held accelerators is whole
seconds of when nature took its steps, and where it would like to run depends on who came first."""
NOT_OURS = (EVENT, NODE, NAMESPACE)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a story ended. `made` and `removed` count, for each object, how often that happened to it."""

    objects: Mapping[str, Any]
    made: Counter[str]
    removed: Counter[str]
    told: frozenset[str]
    """What Events said."""


def ending(cluster: Cluster) -> Ending:
    objects = {
        str(ref): _masked(manifest)
        for resource in cluster.kinds.values()
        for manifest in cluster.list(resource).items
        if (ref := Ref(resource, manifest["metadata"].get("namespace"), manifest["metadata"]["name"]))
        and resource not in NOT_OURS
    }
    changes = [change for change in cluster.changes if change.ref.resource not in NOT_OURS]
    return Ending(
        objects=objects,
        made=Counter(str(change.ref) for change in changes if change.old is None),
        removed=Counter(str(change.ref) for change in changes if change.new is None),
        told=frozenset(_plain(event["message"]) for event in cluster.list(EVENT).items),
    )


def differences(is_: Ending, should: Ending, told: bool = True) -> list[str]:
    """Where two endings differ, a line each; without `told` an Event may be missing."""
    found = list(_compare(dict(is_.objects), dict(should.objects), ""))
    found += [f"made {n} times: {ref}" for ref, n in (is_.made - should.made).items()]
    found += [f"never made: {ref}" for ref in should.made - is_.made]
    found += [f"removed {n} times: {ref}" for ref, n in (is_.removed - should.removed).items()]
    found += [f"not removed: {ref}" for ref in should.removed - is_.removed]
    found += [f"told: {note}" for note in sorted(is_.told - should.told)]
    found += [f"not told: {note}" for note in sorted(should.told - is_.told) if told]
    return found


def _compare(is_: Any, should: Any, path: str) -> Iterator[str]:
    match is_, should:
        case dict(), dict():
            for key in sorted(is_.keys() | should.keys()):
                yield from _compare(is_.get(key), should.get(key), f"{path}.{key}" if path else key)
        case list(), list() if len(is_) == len(should):
            for number, (one, other) in enumerate(zip(is_, should, strict=True)):
                yield from _compare(one, other, f"{path}[{number}]")
        case _ if is_ != should:
            yield f"{path}: {is_!r:.200} instead of {should!r:.200}"


def _masked(value: Any) -> Any:
    match value:
        case dict():
            return {key: _masked(child) for key, child in value.items() if key not in MASKED}
        case list():
            return [_masked(child) for child in value]
        case str():
            return _plain(value)
        case _:
            return value


def _plain(text: str) -> str:
    """Without times, uids, and which node was taken."""
    return GPU_NODE.sub("NODE", TIME.sub("TIME", KERNELS.sub(r"\1UID", LINES_OF_A_RUN.sub(r"\1UID", text))))


# Promises. Each is asked about every change of one kind, with all objects as they were right after it.

View = Mapping[Ref, Manifest]
Promise = Callable[[View, Change], str]
"""What is wrong; "" if nothing is."""


def broken_promises(cluster: Cluster) -> list[str]:
    view = dict(cluster._view(0))  # as it was before the first change known
    broken: dict[str, None] = {}
    for change in cluster.changes:
        if change.new is None:
            view.pop(change.ref, None)
        else:
            view[change.ref] = change.new
        for promise in PROMISES.get(change.ref.resource.kind, ()):
            if wrong := promise(view, change):
                broken[f"{promise.__name__}: version {change.version}: {change.ref}: {wrong}"] = None
    return list(broken)


def intent_is_written_first(view: View, change: Change) -> str:
    """A revision is in status as the pool's target before its servers are touched."""
    new, old = _revision(change.new), _revision(change.old)
    if new in ("", old):
        return ""
    targets = {entry.get("internal", {}).get("target", {}).get("revision") for entry in _pools(view)}
    return "" if new in targets else f"{new} is rolled out, but nobody said so"


def a_candidate_has_evidence(view: View, change: Change) -> str:
    """Servers of a candidate: some run has found for it."""
    if change.new is None:
        return ""
    labels = change.new["spec"]["template"]["metadata"]["labels"]
    if labels[ARM_LABEL] == BASELINE:
        return ""
    winners = {
        (run["metadata"]["labels"][POOL_LABEL], run["status"]["verdict"]["winner"])
        for run in _of(view, "BenchmarkRun")
        if "verdict" in run.get("status", {})
    }
    return "" if (labels[POOL_LABEL], labels[ARM_LABEL]) in winners else f"{labels[ARM_LABEL]} is served unmeasured"


def promoted_is_served(view: View, change: Change) -> str:
    """When status begins to claim Promoted for a generation, all servers are their pool's target, and ready."""
    new, old = change.new or {}, change.old or {}
    claim, before = condition(new, "Promoted"), condition(old, "Promoted")
    if claim is None or (before and before["observedGeneration"] == claim["observedGeneration"]):
        return ""
    for entry in new["status"]["pools"]:
        name = child_name(new["metadata"]["name"], entry["name"])
        found = view.get(Ref(DEPLOYMENT, change.ref.namespace, name), {})
        if (
            _revision(found) != entry["internal"]["target"]["revision"]
            or entry["internal"]["target"]["arm"] == BASELINE
        ):
            return f"{name} serves {_revision(found)}, not {entry['internal']['target']['revision']}"
        if found["status"].get("observedGeneration") != found["metadata"]["generation"]:
            return f"{name} has not begun to roll out"
        if found["status"].get("readyReplicas", 0) < found["spec"]["replicas"]:
            return f"{name} is not ready"
    return ""


def a_finished_run_is_final(view: View, change: Change) -> str:
    if change.old is None or change.new is None:
        return ""
    return (
        "its status changed after the end" if _over(change.old) and change.old["status"] != change.new["status"] else ""
    )


def a_recorded_round_is_kept(view: View, change: Change) -> str:
    """As long as its run is there."""
    if change.old is None:
        return ""
    if change.new is None:
        return "it is gone" if _run_of(view, change.old) else ""
    return "" if change.new["spec"] == change.old["spec"] else "it has changed"


def a_round_is_recorded_before_it_counts(view: View, change: Change) -> str:
    """What status counts is there."""
    counted = ((change.new or {}).get("status") or {}).get("progress", {}).get("round") or 0
    there = len(_results(view, change.new)) if change.new else 0
    return "" if counted <= there else f"{counted} rounds are counted, and {there} are there"


def _results(view: View, run: Manifest) -> list[Manifest]:
    """Its rounds with a result."""
    return [one for one in with_rounds(run, _of(view, "BenchmarkRound"))["rounds"] if not one.get("error")]


def one_round_at_a_time(view: View, change: Change) -> str:
    if change.old is not None or change.new is None:
        return ""
    run = change.new["metadata"]["labels"].get(RUN_LABEL)
    running = [
        job["metadata"]["name"]
        for job in _of(view, "Job")
        if run and job["metadata"]["labels"].get(RUN_LABEL) == run and not _over(job)
    ]
    return f"at once: {', '.join(running)}" if len(running) > 1 else ""


def a_run_goes_on_where_it_measured(view: View, change: Change) -> str:
    """When a round's pod gets its node: that of the run's latest result, unless a try has failed there since, or
    somebody else has it."""
    new, old = change.new or {}, change.old or {}
    run, node = _run_of(view, new), new.get("spec", {}).get("nodeName")
    if run is None or not node or old.get("spec", {}).get("nodeName"):
        return ""
    rounds = with_rounds(run, _of(view, "BenchmarkRound"))["rounds"]
    since = list(itertools.takewhile(lambda one: one.get("error"), reversed(rounds)))
    latest = next((one["node"] for one in reversed(rounds) if not one.get("error")), node)
    others = (pod for pod in _of(view, "Pod") if pod["metadata"]["uid"] != new["metadata"]["uid"])
    taken = {
        pod["spec"].get("nodeName") for pod in others if pod.get("status", {}).get("phase") in ("Pending", "Running")
    }
    if latest in {node, *taken, *(one["node"] for one in since)}:
        return ""
    return f"{run['metadata']['name']} measured on {latest} and goes to {node}"


def _run_of(view: View, pod: Manifest) -> Manifest | None:
    name = pod.get("metadata", {}).get("labels", {}).get(RUN_LABEL)
    return next((run for run in _of(view, "BenchmarkRun") if run["metadata"]["name"] == name), None)


PROMISES: Mapping[str, tuple[Promise, ...]] = {
    "Deployment": (intent_is_written_first, a_candidate_has_evidence),
    "SpeculativeDeployment": (promoted_is_served,),
    "BenchmarkRun": (a_finished_run_is_final, a_round_is_recorded_before_it_counts),
    "BenchmarkRound": (a_recorded_round_is_kept,),
    "Job": (one_round_at_a_time,),
    "Pod": (a_run_goes_on_where_it_measured,),
}


def _over(found: Manifest) -> bool:
    return bool(condition(found, "Complete") or condition(found, "Failed"))


def _of(view: View, kind: str) -> Iterator[Manifest]:
    return (found for ref, found in view.items() if ref.resource.kind == kind)


def _pools(view: View) -> Iterator[Mapping[str, Any]]:
    for found in _of(view, "SpeculativeDeployment"):
        yield from found.get("status", {}).get("pools", ())


def _revision(servers: Manifest | None) -> str:
    return str(servers["spec"]["template"]["metadata"]["labels"][REVISION_LABEL]) if servers else ""
