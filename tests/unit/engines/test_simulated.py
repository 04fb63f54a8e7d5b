"""Variables that fake acceptance are refused in every environment of a server, on every engine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import jax_servers, vllm_server
from tests.support.messages import Says
from tests.unit.engines.sglang import servers

from paceline import api
from paceline.core import Server
from paceline.engines import refusals_of_spec, simulated

ROOT = Path(__file__).parents[3]
SERVERS = {"SGLang": servers.server(), "SGLangJAX": jax_servers.server(), "vLLM": vllm_server.server()}


def refused(server: Server, **engine: Any) -> list[tuple[str, str]]:
    refusals = list(simulated.refusals(replace(server, engine=replace(server.engine, **engine))))
    assert all(refusal.rule == simulated.RULE for refusal in refusals)
    return [(refusal.path, refusal.message) for refusal in refusals]


VARIABLES = (
    "SGLANG_SIMULATE_ACC_LEN", "SGLANG_SIMULATE_ACC_METHOD", "SGLANG_SIMULATE_ACC_TOKEN_MODE",
    "SGLANG_SIMULATE_ACC_GREEDY", "SGLANG_DSPARK_SIMULATE_FOLD", "SGLANG_SIMULATE_UNIFORM_EXPERTS",
    "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS",
    "SGL_SIMULATE_ACC_LEN",  # SGLang reads it as SGLANG_
    "SIMULATE_ACC_LEN", "SIMULATE_ACC_METHOD", "SIMULATE_ACC_TOKEN_MODE",  # 0.4.5 and sglang-jax
)  # fmt: skip


@pytest.mark.parametrize("engine", SERVERS)
@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable(engine: str, name: str, says: Says) -> None:
    env = ({"name": "HOME", "value": "/tmp"}, {"name": name, "value": "2.5"})
    ((path, message),) = refused(SERVERS[engine], env=env)
    assert path == "engine.env[1].name"
    says(message)


def test_in_a_pod_template() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "SGLANG_SIMULATE_ACC_LEN", "value": "4"}]
    over = {"spec": {"containers": [{"name": "mine", "env": env}, {"name": "server", "env": env}]}}
    ((path, _),) = refused(SERVERS["SGLang"], pod_template=over)
    assert path == "engine.podTemplate.spec.containers[1].env[1].name"


@pytest.mark.parametrize(
    "over", [{}, {"spec": None}, {"spec": {"containers": ["server", {"name": "server", "env": 1}]}}]
)
def test_what_has_another_shape_is_told_elsewhere(over: dict[str, Any]) -> None:
    assert refused(SERVERS["SGLang"], pod_template=over) == []


def test_other_variables_are_the_users() -> None:
    assert refused(SERVERS["SGLang"], env=({"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"},)) == []


def test_the_real_server_with_a_known_length_is_still_one_that_is_let_pass() -> None:
    """Its image makes SGLang's variable of another one (dev/sglang/python3)."""
    manifest = yaml.safe_load((ROOT / "dev/sglang/deployment.yaml").read_text())
    manifest["spec"]["engine"]["env"] += [{"name": "PACELINE_TEST_ACCEPTANCE_LENGTH", "value": "2.5"}]
    assert refusals_of_spec.refused(api.deployment(manifest), manifest["spec"]) == ()
    assert "export SGLANG_SIMULATE_ACC_LEN" in (ROOT / "dev/sglang/python3").read_text()
