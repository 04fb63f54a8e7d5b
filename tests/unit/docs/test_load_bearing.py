"""What AGENTS.md calls load-bearing, where no other test holds it."""

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from tests.support.answers import died, half_failed
from tests.support.containers import arms_of, container
from tests.support.world import World
from tests.support.world import example as with_pools

from paceline import api
from paceline.controller.execute import MANAGER
from paceline.core import names
from paceline.core.names import SUPERSEDED, SUSPENDED
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.kube import APPLIED
from paceline.plan.deployment.models import datasets_of, models_of, pin
from paceline.plan.deployment.pool import Pool, pools
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.simulation.reconciler import OURS
from paceline.render import Owner, Settings, round_job
from paceline.render.round_job import round_plan
from paceline.render.serving import ARM_LABEL, REVISION_LABEL, template
from paceline.render.where import ANYWHERE

ROOT = Path(__file__).parents[3]
SETTINGS = Settings(image="paceline")
OWNER = Owner(kind="SpeculativeDeployment", name="qwen3-coder-next", namespace="models", uid="1")


def test_operator_is_the_standard_librarys_name() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_names_that_an_older_release_has_left_in_clusters() -> None:
    assert MANAGER == "paceline"
    assert names.MANAGED_BY == {"app.kubernetes.io/managed-by": "paceline"}
    assert (names.DEPLOYMENT_LABEL, names.POOL_LABEL, names.RUN_LABEL, names.COMPONENT_LABEL, names.CACHE_LABEL) == (
        "paceline.dev/deployment", "paceline.dev/pool", "paceline.dev/run", "paceline.dev/component",
        "paceline.dev/cache",
    )  # fmt: skip
    assert (REVISION_LABEL, ARM_LABEL) == ("paceline.dev/revision", "paceline.dev/arm")
    assert (SUPERSEDED, SUSPENDED, APPLIED) == (
        "paceline.dev/superseded", "paceline.dev/suspended", "paceline.dev/applied",
    )  # fmt: skip
    assert ENVIRONMENT == "PACELINE_ROUND"


def test_a_childs_name_is_its_parts_and_never_longer_than_63() -> None:
    assert names.child_name("qwen3-coder-next", "latency", "0123456789", 1, 0, 0) == (
        "qwen3-coder-next-latency-0123456789-1-0-0"
    )
    assert names.child_name("x" * 60, "latency") == f"{'x' * 52}-a573abfb7c"


def test_the_revisions_and_questions_of_the_example_have_not_moved() -> None:
    """Where the example or a default was not changed, a new value means: with this release every pool falls back to its
    baseline (a revision), is measured again (a fingerprint), or is judged again (a question)."""
    assert {
        pool.name: (pool.question, pool.fingerprint, {arm.name: pool.revision(arm) for arm in pool.spec.arms})
        for pool in example()
    } == {
        "latency": ("6eaf168d64", "329b9d0e38", {"baseline": "2ffa5ed283", "wide": "51689f4e6f"}),
        "throughput": (
            "94cab95cc0",
            "12c2407be6",
            {"baseline": "b876dec508", "narrow": "cdb5a5c108", "wide": "035f6952da"},
        ),
    }


def test_the_commit_of_a_dataset_moves_its_question_and_no_revision() -> None:
    """A dataset shapes no server: other prompts are another question to the same servers."""
    first, second = ({pool.name: pool for pool in example(prompts=digit * 40)} for digit in "12")
    named = {pool.name: pool for pool in example(prompts="1" * 40, revision="v2")}
    for name, pool in first.items():
        assert pool.question != second[name].question
        assert pool.question == named[name].question
        assert {pool.revision(arm) for arm in pool.spec.arms} == {
            second[name].revision(arm) for arm in second[name].spec.arms
        }


def test_what_is_measured_is_what_is_served() -> None:
    """The same argv, environment, image and GPUs, but for the wrapper."""
    for pool in example():
        run = pool.run_spec
        plan = round_plan(OWNER, run, run.arms, 0, 0)
        job = round_job(OWNER, run, plan, ANYWHERE, SETTINGS)["spec"]["template"]
        variables = container(job, "client")["env"]
        asked = RoundPlan.from_json(next(v["value"] for v in variables if v["name"] == ENVIRONMENT))
        for arm, command, measured in zip(pool.spec.arms, asked.arms, arms_of(job), strict=True):
            pod = template(OWNER, pool.name, pool.server, arm, pool.revision(arm), SETTINGS)["spec"]
            (served,) = pod["containers"]
            assert tuple(served["command"]) == command.argv
            for field in ("image", "resources"):
                assert served[field] == measured[field]
            added = {"PACELINE_ARM": arm.name, "PACELINE_KERNELS": "/jit"}
            assert measured["env"] == [*served["env"], *({"name": n, "value": v} for n, v in added.items())]


def test_a_kept_rendering_is_served_whatever_would_be_rendered_today() -> None:
    world = World()
    world.apply(with_pools("latency"))
    world.prefetch_ends()
    (kept,) = world.cluster.of("ControllerRevision")
    kept["data"]["template"]["spec"]["terminationGracePeriodSeconds"] = 7
    world.settle("an older release rendered otherwise", 1)
    (servers,) = world.cluster.of("Deployment")
    assert servers["spec"]["template"] == kept["data"]["template"]


def test_a_round_is_judged_by_what_its_own_job_was_asked() -> None:
    """A round of an older release, which sent one workload: nothing is missing in its result."""
    world = World()
    world.apply(with_pools("latency"))
    world.prefetch_ends()
    world.servers_ready()
    (job,) = world.under_way("round")
    (asked,) = (one for one in container(job["spec"]["template"], "client")["env"] if one["name"] == ENVIRONMENT)
    plan = RoundPlan.from_json(asked["value"])
    asked["value"] = dataclasses.replace(plan, workloads=plan.workloads[:1]).to_json()
    world.round_ends()
    (run,) = world.runs("latency")
    (record,) = run["rounds"]
    assert [(point["workload"], point["valid"]) for point in record["points"]] == [("code@1", True)] * 2


def test_every_field_of_a_status_is_declared() -> None:
    """The API server refuses a status with a field that it does not know, all of it."""
    world = World()
    manifest = with_pools()
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world.apply(manifest)
    found = undeclared(world)
    for step in (
        world.prefetch_ends,
        world.servers_ready,
        lambda: world.round_dies("latency", 1, "killed"),
        lambda: world.round_ends(wide=died, narrow=half_failed),
        *[world.round_ends] * 3,
        lambda: world.annotate(*world.requests("promote")[0]),
        world.until_wake,
        lambda: world.edit("suspend", lambda spec: spec.update(suspend=True)),
    ):
        step()
        found += undeclared(world)
    assert found == []
    assert "holds" in world.pool("latency")


def undeclared(world: World) -> list[str]:
    schemas = {c["spec"]["names"]["kind"]: c["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for c in api.crds()}
    return [
        path
        for (kind, name), found in world.cluster.objects.items()
        if kind in OURS
        for path in unknown(schemas[kind]["properties"]["status"], found.get("status") or {}, f"{kind} {name}: status")
    ]


def unknown(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if below is None:
                yield f"{path}.{key}"
            else:
                yield from unknown(below, inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from unknown(schema["items"], inner, f"{path}[]")


def example(prompts: str = "", revision: str = "main") -> Iterator[Pool]:
    """The pools of the example, every model at the same commit; with prompts of the hub, these at that commit."""
    manifest = yaml.safe_load((ROOT / "examples" / "qwen3-coder-next.yaml").read_text())
    manifest["metadata"] |= {"namespace": "models", "uid": "1"}
    if prompts:
        dataset = {"name": "code", "source": "hf://datasets/team/prompts/code.jsonl", "revision": revision}
        manifest["spec"]["benchmark"] = {"datasets": [dataset]}
    spec = api.deployment(manifest)
    snapshot = Snapshot(manifest=manifest, spec=spec, invalid="", children={}, settings=SETTINGS)
    commits = {(one.source, one.revision): prompts or "0" * 40 for one in datasets_of(spec)}
    pinned = pin(spec, commits | {(m.source, m.revision): "0" * 40 for m in models_of(spec)})
    yield from pools(snapshot, pinned, datetime.now(UTC))
