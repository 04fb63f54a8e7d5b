"""What moves a revision, where a round may run, whose a child is, and how it is called."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.render.example import DEPLOYED, RUN, SETTINGS, arm, pool, run, server, spec

from paceline.core import Cache, Dataset, Server, Tree
from paceline.core.names import LONGEST, child_name, snapshot_path
from paceline.plan.deployment.look import models_of
from paceline.render import Settings, claim, fetch_job, fetch_name, revision_of, round_job
from paceline.render.benchmark import avoided, round_plan
from paceline.render.cache import fetch_inputs
from paceline.render.common import digest
from paceline.render.serving import template


def round_on(node: str | None, *avoid: str) -> dict[str, Any]:
    asked = round_plan(RUN, run(), pool().spec.arms, number=1, attempt=0)
    return round_job(RUN, run(), asked, node, avoid, SETTINGS)


def hostnames(job: dict[str, Any]) -> Any:
    wanted = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    return wanted["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"]


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
        replace(server(), largest_concurrency=64),
    ],
)
def test_what_shapes_the_process_moves_the_revision(other: Server) -> None:
    assert revision_of(other, arm("wide")) != revision_of(server(), arm("wide"))


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
            "engine": {"name": "SGLang", "version": "0.5.6", "image": "registry.example.com/sglang:0.5.6-tails-mpt",
                       "args": ["--attention-backend=triton", "--mem-fraction-static=0.85"],
                       "trust_remote_code": True, "eagle3_targets": ["Qwen3NextForCausalLM"]},
            "target": {"source": "hf://Qwen/Qwen3-Coder-Next", "commit": "1" * 40},
            "served_name": "qwen3-coder-next",
            "accelerator": {"product": "NVIDIA-H200", "count": 4, "tensor_parallel_size": 4},
            "cache": {"claim": "models"},
        },
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


def test_a_first_round_keeps_off_the_nodes_of_other_runs() -> None:
    job = round_on(None, "gpu-2", "gpu-1")
    assert hostnames(job) == [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["gpu-1", "gpu-2"]}]
    assert avoided(job) == {"gpu-1", "gpu-2"}


def test_later_rounds_run_where_the_first_one_ran() -> None:
    job = round_on("gpu-3", "gpu-1")
    assert hostnames(job) == [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-3"]}]
    assert avoided(job) == frozenset()


def test_where_nobody_else_measures_a_first_round_may_go_anywhere() -> None:
    job = round_on(None)
    assert "nodeAffinity" not in job["spec"]["template"]["spec"]["affinity"]
    assert avoided(job) == frozenset()


@pytest.mark.parametrize("job", [round_on(None), round_on("gpu-0")])
def test_no_two_rounds_share_a_node_whosever_they_are(job: dict[str, Any]) -> None:
    (rule,) = job["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert rule["labelSelector"] == {"matchLabels": {"paceline.dev/component": "round"}}
    assert rule["namespaceSelector"] == {}, "empty: all namespaces"
    assert job["spec"]["template"]["metadata"]["labels"]["paceline.dev/component"] == "round"


def test_a_round_is_tried_once_by_kubernetes_and_sees_no_credentials() -> None:
    job = round_on(None)
    pod = job["spec"]["template"]["spec"]
    assert (job["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert pod["automountServiceAccountToken"] is False
    assert pod["activeDeadlineSeconds"] > 0
    assert "activeDeadlineSeconds" not in job["spec"], "a round that waits for room is not a round that hangs"


# Whose, and how it is called.


def test_every_child_has_its_owner_but_the_claim() -> None:
    wanted = spec().cache_claim
    assert wanted is not None
    assert "ownerReferences" not in claim("models", wanted)["metadata"]
    (owner,) = round_on(None)["metadata"]["ownerReferences"]
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
    assert len(name) <= LONGEST
    if len("-".join(parts)) > LONGEST:
        assert name != child_name(*parts, "x")
