"""What moves a revision, where a round may run, whose a child is, and how it is called."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.containers import container
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, pool, run, server, spec

from paceline.api import served_spec
from paceline.core import Cache, Dataset, RunSpec, Server, Tree
from paceline.core.canonical import digest
from paceline.core.names import MAX_NAME_LENGTH, child_name, snapshot_path
from paceline.plan.deployment.models import models_of
from paceline.render import Settings, claim, fetch_job, fetch_name, revision_of, round_job
from paceline.render.cache import fetch_inputs
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE, Where


def round_on(where: Where = ANYWHERE, asked: RunSpec | None = None) -> dict[str, Any]:
    plan = round_plan(RUN, run(), pool().spec.arms, number=1, try_=0)
    return round_job(RUN, asked or run(), plan, where, SETTINGS)


def affinity(job: dict[str, Any]) -> Any:
    return job["spec"]["template"]["spec"]["affinity"]


def liked(job: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Operator and nodes of what a round would like."""
    terms = affinity(job)["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    fields = [field for term in terms for field in term["preference"]["matchFields"]]
    assert {field["key"] for field in fields} == {"metadata.name"}, "a hostname label may differ from the node's name"
    return [(field["operator"], field["values"]) for field in fields]


def test_rounds_of_two_runs_write_into_no_common_file() -> None:
    """Names come again: in another namespace that shares the volume, and after a run was deleted. A uid does not."""
    again = replace(RUN, uid="uid-of-another-run")
    first, second = (round_plan(owner, run(), pool().spec.arms, 1, 0).lines_path for owner in (RUN, again))
    assert first == f"/models/.paceline/results/{RUN.name}/uid-of-the-run/1-0.jsonl.gz"
    assert first != second


# Revisions.


@pytest.mark.parametrize(
    "other",
    [
        replace(server(), engine=replace(server().engine, image="lmsysorg/sglang:v0.5.24")),
        replace(server(), engine=replace(server().engine, args=("--attention-backend=fa3",))),
        replace(server(), engine=replace(server().engine, env=({"name": "NCCL_DEBUG", "value": "INFO"},))),
        replace(server(), accelerator=replace(server().accelerator, count=8)),
        replace(server(), target=replace(server().target, commit="f" * 40)),
        replace(server(), max_concurrency=64),
    ],
)
def test_what_shapes_the_process_moves_the_revision(other: Server) -> None:
    assert revision_of(other, arm("wide")) != revision_of(server(), arm("wide"))


def test_a_price_shapes_nothing() -> None:
    priced = replace(server(), accelerator=replace(server().accelerator, price_per_hour="2.5"))
    assert revision_of(priced, arm("wide")) == revision_of(server(), arm("wide"))
    assert served_spec(priced, arm("wide")) == served_spec(server(), arm("wide"))


def test_arms_differ_by_what_they_run_not_by_their_name() -> None:
    wide, other_tree = arm("wide"), Tree(num_steps=5, top_k=1, num_draft_tokens=6)
    revisions = {revision_of(server(), arm("baseline")), revision_of(server(), wide)}
    assert len(revisions) == 2
    assert revision_of(server(), replace(wide, name="broad")) in revisions
    assert revision_of(server(), replace(wide, tree=other_tree)) not in revisions
    assert revision_of(server(), replace(wide, args=("--page-size=1",))) not in revisions


def test_the_pools_differ_though_they_share_a_candidate() -> None:
    """Their largest concurrency pins another number of running requests: 48 and 64."""
    assert revision_of(server("throughput"), arm("wide", "throughput")) != revision_of(server(), arm("wide"))


def test_how_the_models_are_brought_moves_no_revision_and_no_commit_but_makes_another_job() -> None:
    assert spec().server.cache.env == server().cache.env == ()
    proxied = replace(spec(), server=replace(spec().server, cache=replace(spec().server.cache, env=(PROXY,))))
    fetch = fetch_job(DEPLOYED, proxied.server, models_of(proxied), SETTINGS)
    assert PROXY in fetch["spec"]["template"]["spec"]["containers"][0]["env"]
    assert fetch["metadata"]["name"] != fetch_name(DEPLOYED, spec().server, models_of(spec()))
    assert fetch_inputs(proxied.server, models_of(proxied)) == fetch_inputs(spec().server, models_of(spec()))


def test_kernels_that_others_have_compiled_are_loaded_by_nobody() -> None:
    """They are code. A deployment's rounds and servers share them, or each would be started cold."""

    def compiled(job: dict[str, Any]) -> str:
        mounts = container(job["spec"]["template"])["volumeMounts"]
        (path,) = (mount["subPath"] for mount in mounts if mount["mountPath"] == "/jit")
        return str(path)

    asked = round_plan(RUN, run(), pool().spec.arms, number=0, try_=0)
    kinds = [replace(RUN, deployment=uid, namespace=n) for uid, n in (("a", "x"), ("b", "x"), ("a", "y"), ("", "x"))]
    paths = [compiled(round_job(one, run(), asked, ANYWHERE, SETTINGS)) for one in kinds]
    assert len(set(paths)) == len(paths)
    served = template(DEPLOYED, "latency", server(), arm("baseline"), "0", SETTINGS)
    newer = replace(server(), engine=replace(server().engine, image="registry.example.com/sglang:newer"))
    other = template(DEPLOYED, "latency", newer, arm("baseline"), "0", SETTINGS)
    assert compiled({"spec": {"template": other}}) != compiled({"spec": {"template": served}}), "of another image"
    assert compiled({"spec": {"template": served}}) == compiled(round_job(RUN, run(), asked, ANYWHERE, SETTINGS))


def test_a_volume_that_leaves_fsgroup_alone_is_written_as_the_user_says() -> None:
    said = {"runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 1002, "supplementalGroups": (7,)}
    theirs = replace(server(), cache=replace(server().cache, security_context=said))
    models = models_of(spec())
    pod = fetch_job(DEPLOYED, theirs, models, SETTINGS)["spec"]["template"]["spec"]
    assert (pod["securityContext"]["fsGroup"], pod["securityContext"]["supplementalGroups"]) == (1002, [7])
    context = pod["containers"][0]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (1000, 1001, True)
    assert fetch_name(DEPLOYED, theirs, models) != fetch_name(DEPLOYED, server(), models)


def test_models_in_another_order_are_no_other_prefetch() -> None:
    there, models = spec().server, models_of(spec())
    assert len(models) > 1
    assert fetch_name(DEPLOYED, there, models[::-1]) == fetch_name(DEPLOYED, there, models)


def test_prompts_of_the_hub_are_brought_by_another_job_and_move_no_models() -> None:
    there, models = spec().server, models_of(spec())
    first, second = (
        Dataset(name="mine", source="hf://datasets/team/prompts/code.jsonl", requests=6, max_tokens=96, revision=one)
        for one in ("main", "v2")
    )
    names = {fetch_name(DEPLOYED, there, models, asked) for asked in ((), (first,), (second,), (first, second))}
    assert len(names) == 4
    assert fetch_name(DEPLOYED, there, models, (second, first)) in names
    (container,) = fetch_job(DEPLOYED, there, models, SETTINGS, datasets=(replace(first, commit="5" * 40),))["spec"][
        "template"
    ]["spec"]["containers"]
    request = json.loads(next(v["value"] for v in container["env"] if v["name"] == "PACELINE_FETCH"))
    assert request["datasets"] == [{"source": first.source, "revision": "main", "commit": "5" * 40}]
    assert [sorted(model) for model in request["models"]] == [["revision", "source"]] * len(models)


PROXY = {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}


def test_a_value_at_its_default_is_not_hashed() -> None:
    """So a field that a later release adds moves no revision: not even one whose default is made by a factory."""
    assert server().node_selector == {}
    assert revision_of(server(), arm("wide")) == revision_of(replace(server(), node_selector={}), arm("wide"))
    told: dict[str, Any] = {
        "server": {
            "engine": {"type": "SGLang", "version": "0.5.6", "image": "registry.example.com/sglang:0.5.6-tails-mpt",
                       "args": ["--attention-backend=triton", "--mem-fraction-static=0.85"],
                       "trust_remote_code": True, "eagle3_targets": ["Qwen3NextForCausalLM"]},
            "target": {"source": "hf://Qwen/Qwen3-Coder-Next", "commit": "1" * 40},
            "served_name": "qwen3-coder-next",
            "accelerator": {"product": "NVIDIA-H200", "count": 4, "tensor_parallel_size": 4},
            "cache": {"claim": "models"},
        },
        "running_requests": 48,
        "draft": None,
        "tree": None,
        "args": [],
    }  # fmt: skip
    assert revision_of(server(), arm("baseline")) == digest(told), "a changed hash rolls every pool of every cluster"


def test_a_server_may_start_for_as_long_as_a_promotion_may_take() -> None:
    asked = (DEPLOYED, "latency", server(), arm("wide"), "0123456789", SETTINGS, timedelta(hours=1))
    probe = template(*asked)["spec"]["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 3600


def test_a_server_has_time_to_end_what_it_has_begun() -> None:
    """SGLang waits for its requests and then shuts down in up to a minute and a half; the preStop sleep is first."""
    pod = template(DEPLOYED, "latency", server(), arm("wide"), "0123456789", SETTINGS)["spec"]
    assert pod["terminationGracePeriodSeconds"] == 5 + 120 + 90


def test_a_directory_of_the_node_must_be_there() -> None:
    """Made by the kubelet it would be root's, and the prefetch could not write to it."""
    node = replace(server(), cache=Cache(host_path="/srv/models"))
    volumes = template(DEPLOYED, "latency", node, arm("wide"), "0123456789", SETTINGS)["spec"]["volumes"]
    assert {"name": "models", "hostPath": {"path": "/srv/models", "type": "Directory"}} in volumes


def test_the_installation_moves_no_revision_but_what_it_decides_is_in_the_template() -> None:
    revision = revision_of(server(), arm("wide"))
    ours = template(DEPLOYED, "latency", server(), arm("wide"), revision, SETTINGS)
    plain = template(DEPLOYED, "latency", server(), arm("wide"), revision, Settings(image="paceline"))
    assert ours["spec"]["priorityClassName"] == "paceline-server"
    assert "priorityClassName" not in plain["spec"]


# Where a round may run.


def test_a_run_would_go_on_where_it_measured() -> None:
    assert liked(round_on(Where(node="gpu-3"))) == [("In", ["gpu-3"])]


def test_a_run_would_keep_off_nodes_that_failed_it() -> None:
    assert liked(round_on(Where(avoid=("gpu-2", "gpu-1")))) == [("NotIn", ["gpu-1"]), ("NotIn", ["gpu-2"])]


@pytest.mark.parametrize("where", [ANYWHERE, Where(node="gpu-3", avoid=("gpu-1",))])
def test_it_has_to_run_on_no_node_and_to_keep_off_none(where: Where) -> None:
    """One that is full, or the only one there is, must not hold a run up."""
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity(round_on(where)).get("nodeAffinity", {})


def test_no_two_rounds_share_a_node_whosever_they_are() -> None:
    """Of two, one came later, and names the namespace of the other: the scheduler asks both."""
    job = round_on(Where(namespaces=("others", "more")))
    (rule,) = affinity(job)["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"] == {"matchLabels": {"paceline.dev/component": "round"}}
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["namespaces"] == sorted((RUN.namespace, "others", "more"))
    assert job["spec"]["template"]["metadata"]["labels"]["paceline.dev/component"] == "round"


def test_a_pod_with_our_label_where_nobody_measures_keeps_no_round_waiting() -> None:
    (rule,) = affinity(round_on())["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["namespaces"] == [RUN.namespace]
    assert "namespaceSelector" not in rule, "an empty one means all"


def test_a_queue_finds_its_name_on_the_job_and_on_the_pod() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "gpus", "app.kubernetes.io/managed-by": "somebody"}
    job = round_on(asked=replace(run(), pod_labels=labels))
    for found in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert found["kueue.x-k8s.io/queue-name"] == "gpus"
        assert found["app.kubernetes.io/managed-by"] == "paceline", "or we would never see it again"


def test_kueues_queue_is_named_on_the_job_and_who_suspends_it_is_not_ours_to_say() -> None:
    """A pod with the name of a queue could be one that Kueue queues by itself."""
    job = round_on(asked=replace(run(), queue_name="gpus"))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert "kueue.x-k8s.io/queue-name" not in job["spec"]["template"]["metadata"]["labels"]
    assert "suspend" not in job["spec"]


def test_a_round_is_tried_once_by_kubernetes_and_sees_no_credentials() -> None:
    job = round_on()
    pod = job["spec"]["template"]["spec"]
    assert (job["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert pod["automountServiceAccountToken"] is False
    assert pod["activeDeadlineSeconds"] > 0
    assert "activeDeadlineSeconds" not in job["spec"], "a round that waits for room is not a round that hangs"


# Whose, and how it is called.


def test_what_client_and_servers_tell_each_other_has_one_writer_each_way() -> None:
    """A link that a server could put where the client writes would lead to other people's models."""
    asked = round_plan(RUN, run(), pool().spec.arms, number=0, try_=0)
    pod = round_job(RUN, run(), asked, ANYWHERE, SETTINGS)["spec"]["template"]["spec"]
    writers = [
        (mount["mountPath"], mount.get("subPath", ""), one["name"])
        for one in (*pod["initContainers"], *pod["containers"])
        for mount in one["volumeMounts"]
        if mount["mountPath"].startswith("/ctl") and not mount.get("readOnly")
    ]
    arms = [("/ctl/out", arm.name, f"arm-{arm.name}") for arm in asked.arms]
    assert writers == [("/ctl/in", "", "client"), *arms]
    assert not pod.get("shareProcessNamespace")


def test_every_child_has_its_owner_but_the_claim() -> None:
    wanted = spec().cache_claim
    assert wanted is not None
    assert "ownerReferences" not in claim("models", wanted)["metadata"]
    (owner,) = round_on()["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (RUN.uid, True, False)


def test_another_target_is_another_prefetch() -> None:
    elsewhere = replace(spec().server, target=replace(spec().server.target, revision="v2"))
    moved = replace(spec(), server=elsewhere)
    assert fetch_name(DEPLOYED, elsewhere, models_of(moved)) != fetch_name(DEPLOYED, spec().server, models_of(spec()))


def test_models_are_where_the_hub_client_keeps_them() -> None:
    path = snapshot_path("hf://Qwen/Qwen3-Coder-Next", "1" * 40)
    assert path == f"/models/hub/models--Qwen--Qwen3-Coder-Next/snapshots/{'1' * 40}"


@given(st.lists(st.text("abcz0-", min_size=1, max_size=40), min_size=1, max_size=4))
def test_a_name_fits_and_long_names_keep_apart(parts: list[str]) -> None:
    name = child_name(*parts)
    assert len(name) <= MAX_NAME_LENGTH
    if len("-".join(parts)) > MAX_NAME_LENGTH:
        assert name != child_name(*parts, "x")
