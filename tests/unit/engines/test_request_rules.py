"""Workloads whose requests servers would answer otherwise than they ask, and what tools need."""

import json
from typing import Any

import pytest
from tests.support.edits import example
from tests.support.jax_servers import BASELINE, arm
from tests.support.messages import Says

from paceline import api
from paceline.core import Arm, Dataset, RunSpec, Workload
from paceline.engines import ENGINES, refusals_of_spec
from paceline.engines.request_rules import RULE, refusals

JAX, VLLM = ENGINES["SGLangJAX"], ENGINES["vLLM"]
FORM = json.dumps({"type": "json_object"})
BLOCKS = arm("DFLASH", block_size=8)


def load(**fields: Any) -> Workload:
    return Workload(
        dataset=Dataset(name="bugs", source="builtin://code", requests=8, max_tokens=32, **fields), concurrency=1
    )


@pytest.mark.parametrize(
    ("one", "asked", "path"),
    [
        (BASELINE, load(response_format=FORM), ""),
        (arm(), load(), ""),
        (arm(), load(temperature=0.7), ""),
        (arm(), load(response_format=FORM), "responseFormat"),
        (BLOCKS, load(response_format=FORM), "responseFormat"),
        (BLOCKS, load(temperature=0.7), "temperature"),
        (BLOCKS, load(temperature=None), "temperature"),
    ],
)
def test_what_sglang_jax_does_not_do_once_it_speculates(one: Arm, asked: Workload, path: str, says: Says) -> None:
    found = [why for _, why in refusals(JAX, (BASELINE, one), (asked,))]
    assert [why.path for why in found] == [path] * bool(path)
    says(*(why.message for why in found))


def test_vllm_does_all_of_it() -> None:
    assert list(refusals(VLLM, (arm(),), (load(response_format=FORM, temperature=None),))) == []


def test_it_is_told_at_the_dataset_of_a_deployment_and_at_the_workload_of_a_run() -> None:
    manifest = example("qwen3-8b-tpu")
    manifest["spec"]["benchmark"]["datasets"] = [
        {"name": "code", "source": "builtin://code"},
        {"name": "chat", "source": "builtin://chat", "responseFormat": FORM},
    ]
    spec = api.deployment(manifest)
    (pool,) = spec.pools
    run = RunSpec(pool=pool.name, server=spec.server, arms=pool.arms, workloads=pool.workloads, gate=pool.gate)
    found = [
        (one.rule, one.path)
        for one in (*refusals_of_spec.refused(spec, manifest["spec"]), *refusals_of_spec.refused(run, {}))
    ]
    assert found == [(RULE, "spec.benchmark.datasets[1].responseFormat"), (RULE, "spec.workloads[1].responseFormat")]


@pytest.mark.parametrize(
    ("body", "vllm", "jax"),
    [
        ({}, (), ()),
        ({"tools": [{}]}, ("--enable-auto-tool-choice", "--tool-call-parser"), ("--tool-call-parser",)),
        ({"tools": [{}], "tool_choice": "auto"}, ("--enable-auto-tool-choice", "--tool-call-parser"),
         ("--tool-call-parser",)),
        ({"tools": [{}], "tool_choice": "required"}, (), ("--tool-call-parser",)),
        ({"tools": [{}], "tool_choice": "none"}, (), ()),
    ],
)  # fmt: skip
def test_the_flags_that_tools_need(body: dict[str, Any], vllm: tuple[str, ...], jax: tuple[str, ...]) -> None:
    assert (VLLM.tools_need(body), JAX.tools_need(body)) == (vllm, jax)
    assert ENGINES["SGLang"].tools_need(body) == ()
