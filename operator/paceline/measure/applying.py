"""Whether a measured run may be evidence in a cluster, and how it gets there. Pure."""

import json
import math
from datetime import datetime

import yaml

from paceline import api
from paceline.measure.question import IN_MEMORY
from paceline.plan.objects import Object, brings_rounds
from paceline.plan.run.imported import UnfitError, brought
from paceline.render import Owner

LARGEST_ANNOTATION = 262_144
"""Bytes of all annotations of an object (k8s.io/apimachinery, pkg/api/validation/objectmeta.go,
TotalAnnotationSizeLimitB). `kubectl apply` without --server-side keeps the whole file in one."""
OF_KUBECTL = 150
"""Bytes that it takes beside the file: its name (kubectl.kubernetes.io/last-applied-configuration), `annotations`, the
namespace and the end of the line."""
LARGEST_OBJECT = 1_400_000
"""Bytes: etcd takes a request of 1.5 MiB (--max-request-bytes); the rest is for managedFields."""
NAMEABLE = 2
"""Arms of a gate about one tree, which a pool can name; about a schedule it asks at other loads than the pool's."""
ESCAPED = "&<>"
"""Go writes each of them as six bytes."""


def applying(file: str, run: Object, now: datetime, *, searched: bool = False) -> tuple[str, ...]:
    """Lines for a person; none for a run that brings no rounds along. `searched`: what it compares with the baseline
    was found by a search before it, which the operator does not know; so it is evidence of a pool that names it."""
    if not brings_rounds(run):
        return ()
    spec, name = api.run(run), str(run["metadata"]["name"])
    owner = Owner(kind="BenchmarkRun", name=name, namespace=IN_MEMORY["namespace"], uid=IN_MEMORY["uid"])
    assert spec.measured
    try:
        brought(owner, spec, spec.measured, now)
    except UnfitError as error:
        return (f"no evidence for a cluster: {error}",)
    if (size := written(run)) > LARGEST_OBJECT:
        return (f"no evidence for a cluster: it takes {size} bytes, and an API server stores {LARGEST_OBJECT}",)
    if searched and len(spec.arms) > NAMEABLE:
        return ("no evidence for a cluster: a pool compares a schedule only after a search of its own",)
    where = f"before its pool is measured there{_as_candidate(run) if searched else ''}, where the"
    on_the_server = " --server-side" if size + OF_KUBECTL > LARGEST_ANNOTATION else ""
    return (
        f"kubectl apply{on_the_server} -f {file}  evidence in a cluster, {where} "
        "administrator allows it (evidence.imported)",
    )


def _as_candidate(run: Object) -> str:
    """How a pool asks the question that this run has answered."""
    found = {key: value for key, value in run["spec"]["arms"][1].items() if value != []}
    # The spec's head need not be the winner's. A commit is resolved anew there.
    head = found["draft"]
    fields = ("algorithm", "name", "source", "revision")
    found["draft"] = {key: head[key] for key in fields if key in head and head[key] != "main"}
    candidates = yaml.dump([found], default_flow_style=True, sort_keys=False, width=math.inf).strip()
    return f" with `candidates: {candidates}` in place of search"


def written(run: Object) -> int:
    """Bytes of the file as kubectl writes it into its annotation."""
    text = json.dumps(run, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode()) + 5 * sum(map(text.count, ESCAPED))
