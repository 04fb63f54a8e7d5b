"""engine.podTemplate: what of it reaches a served pod, a round's and the prefetch's; and what can never be moved."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support import golden
from tests.support.containers import container
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, pool, run, server, spec
from tests.support.pod_templates import OVERLAY, with_overlay

from paceline.engines import ENGINES
from paceline.engines.pod_template import refusals
from paceline.plan.deployment.models import models_of
from paceline.render import fetch_job, round_job
from paceline.render.overlay import MERGE_KEYS, laid_over
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE, Where

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GOLDEN = Path(__file__).with_name("golden")


def served(over: Mapping[str, Any]) -> dict[str, Any]:
    return template(DEPLOYED, "latency", with_overlay(over), arm("wide"), "0123456789", SETTINGS)


def measured(over: Mapping[str, Any], where: Where = ANYWHERE) -> dict[str, Any]:
    asked = round_plan(RUN, run(), pool().spec.arms, number=0, try_=0)
    job = round_job(RUN, replace(run(), server=with_overlay(over)), asked, where, SETTINGS)
    found: dict[str, Any] = job["spec"]["template"]
    return found


def refused(over: Mapping[str, Any]) -> list[str]:
    return [refusal.path for refusal in refusals(with_overlay(over), ENGINES["SGLang"])]


def test_a_served_pod_with_all_of_it() -> None:
    assert refused(OVERLAY) == []
    golden.check(GOLDEN / "podtemplate.yaml", served(OVERLAY))


def test_a_round_runs_where_the_servers_run_and_in_the_same_container() -> None:
    """But without labels, or a Service of the user's would find it; without sidecars, probes and the priority."""
    serving, round_ = served(OVERLAY), measured(OVERLAY)
    for field in ("nodeSelector", "tolerations", "runtimeClassName", "imagePullSecrets"):
        assert round_["spec"][field] == serving["spec"][field]
    for field in ("resources", "securityContext", "image"):
        assert container(round_)[field] == container(serving)[field]
    assert container(round_)["env"][:-2] == container(serving)["env"]
    assert {"name": "tuning", "mountPath": "/tuning"} in container(round_)["volumeMounts"]
    assert "startupProbe" not in container(round_)
    first = serving["spec"]["initContainers"]
    assert round_["spec"]["initContainers"][: len(first)] == first
    names = [one["name"] for one in (*round_["spec"]["initContainers"][len(first) :], *round_["spec"]["containers"])]
    assert names == ["client", "arm-baseline", "arm-wide", "conclude"]
    assert [volume["name"] for volume in round_["spec"]["volumes"]] == [
        "models",
        "shm",
        "ctl-in",
        "ctl-out",
        "tmp",
        "tuning",
    ]
    assert round_["spec"]["priorityClassName"] == "paceline-benchmark"
    assert "team" not in round_["metadata"]["labels"]
    assert round_["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "rdma"}


def test_what_a_round_would_like_stands_beside_what_the_user_asks_of_nodes() -> None:
    theirs: dict[str, Any] = {"weight": 7, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
    asked = OVERLAY["spec"]["affinity"]["nodeAffinity"]
    over = {"spec": {"affinity": {"nodeAffinity": {**asked, PREFERRED: [theirs]}}}}
    affinity = measured(over, Where(node="gpu-1"))["spec"]["affinity"]
    ours = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
    assert affinity["nodeAffinity"] == {**asked, PREFERRED: [theirs, {"weight": 100, "preference": ours}]}
    assert "podAntiAffinity" in affinity


def test_an_init_container_that_goes_on_is_a_sidecar() -> None:
    goes_on = {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}
    over = {"spec": {"initContainers": [goes_on]}}
    assert served(over)["spec"]["initContainers"] == [goes_on]
    assert "mesh" not in {one["name"] for one in measured(over)["spec"]["initContainers"]}


def test_the_prefetch_goes_where_the_servers_go() -> None:
    """And shares its files with them; sidecars, runtime and priority are none of its business."""
    brought = fetch_job(DEPLOYED, with_overlay(OVERLAY, spec().server), models_of(spec()), SETTINGS)
    pod = brought["spec"]["template"]["spec"]
    assert (pod["nodeSelector"]["rack"], pod["securityContext"]["fsGroup"]) == ("a", 1000)
    assert [one["key"] for one in pod["tolerations"]] == ["nvidia.com/gpu", "dedicated"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert {"runtimeClassName", "priorityClassName", "initContainers"}.isdisjoint(pod)
    assert [one["name"] for one in pod["containers"]] == ["fetch"]


def test_without_an_overlay_nothing_is_other_than_before() -> None:
    assert served({}) == template(DEPLOYED, "latency", with_overlay({}), arm("wide"), "0123456789", SETTINGS)


# Every value that stands in a served pod, and what an overlay would be that moves it.


def moves(base: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """Path and overlay of each; items of a list are told apart as the merge does it."""
    match base:
        case Mapping():
            for key, value in base.items():
                yield from ((f"{key}.{path}".strip("."), {key: over}) for path, over in moves(value, key))
        case [Mapping(), *_]:
            key = MERGE_KEYS.get(field, "name")
            for item in base if key in base[0] else ():
                rest = {name: value for name, value in item.items() if name != key}
                for path, over in moves(rest):
                    yield f"{item[key]}.{path}", [{key: item[key], **over}]
        case _:
            yield "", f"not {base}"


MOVES = dict(moves(template(DEPLOYED, "latency", server(), arm("wide"), "0123456789", SETTINGS)))
PATIENCE = ("timeoutSeconds", "periodSeconds", "failureThreshold")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
YOURS = {
    "spec.priorityClassName",
    "spec.terminationGracePeriodSeconds",
    *(f"spec.containers.server.env.{one['name']}.value" for one in ENGINES["SGLang"].env(server())),
    *(f"spec.containers.server.{probe}.{field}" for probe in PROBES for field in PATIENCE),
    "spec.volumes.shm.emptyDir.medium",
}


def test_of_all_that_stands_in_a_pod_these_can_be_moved_and_no_others() -> None:
    assert {path for path, over in MOVES.items() if not refused(over)} == YOURS


NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcdef")}, optional={"x": st.integers(), "y": st.integers()}),
    max_size=5,
    unique_by=lambda item: str(item["name"]),
)
SEVERAL = st.lists(st.sampled_from(sorted(MOVES)), max_size=3)
PARTS = st.sampled_from([{"spec": {key: value}} for key, value in OVERLAY["spec"].items()])


@given(SEVERAL, st.lists(PARTS, max_size=3))
def test_an_overlay_is_refused_or_moves_nothing_of_ours(paths: list[str], parts: list[dict[str, Any]]) -> None:
    over: dict[str, Any] = {}
    for one in (*(MOVES[path] for path in paths), *parts):
        over = laid_over(over, one)
    if refused(over):
        assert not set(paths) <= YOURS
        return
    once, before = served(over), dict(leaves(served({})))
    moved = {path for path, value in leaves(once) if path in before and before[path] != value}
    assert moved <= YOURS
    assert laid_over(once, over) == once, "laid over twice is laid over once"


def leaves(base: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at each path of `moves`, and at the path of every list without names."""
    match base:
        case Mapping():
            for key, value in base.items():
                yield from ((f"{key}.{path}".strip("."), leaf) for path, leaf in leaves(value, key))
        case [Mapping(), *_] if (key := MERGE_KEYS.get(field, "name")) in base[0]:
            for item in base:
                rest = {name: value for name, value in item.items() if name != key}
                yield from ((f"{item[key]}.{path}", leaf) for path, leaf in leaves(rest))
        case _:
            yield "", base


@given(NAMED, NAMED)
def test_named_objects_keep_their_order(base: list[dict[str, Any]], over: list[dict[str, Any]]) -> None:
    """Ours first, then what is new, each as it came."""
    names = [item["name"] for item in base]
    new = [item["name"] for item in over if item["name"] not in names]
    assert [item["name"] for item in laid_over(base, over)] == names + new


@given(NAMED, NAMED)
def test_neither_side_is_edited(base: Any, over: Any) -> None:
    before = deepcopy((base, over))
    laid_over(base, over)
    assert (base, over) == before
