"""Where the client of a round finds a user's prompts."""

from dataclasses import replace
from typing import Any

from tests.support.containers import arms_of, container
from tests.support.example import RUN, SETTINGS, pool, run

from paceline.core import Dataset, RunSpec, Workload
from paceline.evidence import RoundPlan
from paceline.render import round_job
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

CACHE = "models"


def of(**sources: str) -> RunSpec:
    """Each at concurrencies 1 and 2."""
    sets = [Dataset(name=name, source=source, requests=6, max_tokens=96) for name, source in sources.items()]
    return replace(run(), workloads=tuple(Workload(dataset=one, concurrency=n) for n in (1, 2) for one in sets))


def rendered(asked: RunSpec) -> tuple[RoundPlan, dict[str, Any], dict[str, Any]]:
    """The plan, and what belongs to prompts of the pod's volumes and of its client's mounts, by name."""
    plan = round_plan(RUN, asked, pool().spec.arms, number=0, try_=0)
    pod = round_job(RUN, asked, plan, where=ANYWHERE, settings=SETTINGS)["spec"]["template"]
    assert not any("prompts" in mount["name"] for arm in arms_of(pod) for mount in arm["volumeMounts"])
    volumes = {one.pop("name"): one for one in pod["spec"]["volumes"] if "prompts" in one["name"]}
    mounts = {one.pop("name"): one for one in container(pod, "client")["volumeMounts"] if "prompts" in one["name"]}
    return plan, volumes, mounts


def test_a_config_map_is_mounted_for_the_client_alone() -> None:
    plan, volumes, mounts = rendered(of(mine="configMap://team/code.jsonl", code="builtin://code"))
    assert plan.files == {"mine": "/prompts/mine/code.jsonl"}
    items = [{"key": "code.jsonl", "path": "code.jsonl"}]
    assert volumes == {"paceline-prompts-mine": {"configMap": {"name": "team", "items": items, "optional": True}}}
    assert mounts == {"paceline-prompts-mine": {"mountPath": "/prompts/mine", "readOnly": True}}


def test_another_claim_is_mounted_once_and_only_to_be_read() -> None:
    plan, volumes, mounts = rendered(of(mine="pvc://prompts/a/b.json", other="pvc://prompts/c.jsonl"))
    assert plan.files == {"mine": "/prompts/mine/a/b.json", "other": "/prompts/mine/c.jsonl"}
    assert volumes == {
        "paceline-prompts-mine": {"persistentVolumeClaim": {"claimName": "prompts", "readOnly": True}},
    }
    assert mounts == {"paceline-prompts-mine": {"mountPath": "/prompts/mine", "readOnly": True}}


def test_the_caches_claim_is_there_already() -> None:
    plan, volumes, mounts = rendered(of(mine=f"pvc://{CACHE}/prompts/code.jsonl"))
    assert run().server.cache.claim == CACHE
    assert plan.files == {"mine": "/models/prompts/code.jsonl"}
    assert (volumes, mounts) == ({}, {})


def test_what_the_prefetch_brought_is_on_the_cache_by_its_commit() -> None:
    asked = of(mine="hf://datasets/team/prompts/data/code.jsonl", code="builtin://code")
    pinned = tuple(
        replace(one, dataset=replace(one.dataset, commit="5" * 40)) if one.dataset.of_the_hub else one
        for one in asked.workloads
    )
    plan, volumes, mounts = rendered(replace(asked, workloads=pinned))
    assert plan.files == {"mine": f"/models/hub/datasets--team--prompts/snapshots/{'5' * 40}/data/code.jsonl"}
    assert (volumes, mounts) == ({}, {})
