"""What a round's Job asks for, as a machine without a cluster has it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import example, vllm_server
from tests.support.messages import Says
from tests.support.rounds import PLAN, arm_command

from paceline.core import Arm
from paceline.engines import ENGINES
from paceline.measure.machine import (
    Machine,
    Program,
    UnsetVariableError,
    as_here,
    expanded,
    left_out,
    otherwise,
    plan_here,
    process_environment,
    read_by_engines,
)
from paceline.measure.pod import of_servers
from paceline.plan.run.snapshot import RoundJob
from paceline.render import round_job
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

HERE = Machine(
    name="desk",
    folder=Path("/home/me/run.d"),
    port=31000,
    command=("/opt/venv/bin/python", "-m", "sglang.launch_server"),
    paths={"/models/hub/models--A--B/snapshots/c0": "/data/b", "/models": "/data", "/jit": "/home/me/run.d/kernels"},
    files={"tickets": "/data/tickets.jsonl"},
)
POD = {"uid": "u-1", "name": "run-0-0", "node": "desk"}


def rendered(arm: str) -> tuple[str, ...]:
    """As it would be served."""
    return ENGINES["SGLang"].argv(example.server(), example.arm(arm))


def test_only_program_address_and_paths_of_a_command_are_of_this_machine() -> None:
    served = rendered("wide")
    plan = replace(PLAN, arms=(arm_command("wide", *served),))
    (arm,) = plan_here(plan, replace(HERE, paths={})).arms
    assert arm.argv[:3] == HERE.command
    changed = [(was, word) for was, word in zip(served[3:], arm.argv[3:], strict=True) if was != word]
    assert changed == [("0.0.0.0", "127.0.0.1"), ("30000", "31000")]


def test_without_a_command_the_program_is_that_of_the_path() -> None:
    plan = replace(PLAN, arms=(arm_command("wide", *rendered("wide")),))
    (arm,) = plan_here(plan, replace(HERE, command=None)).arms
    assert arm.argv[:3] == ("python3", "-m", "sglang.launch_server")


@pytest.mark.parametrize(
    ("in_a_pod", "here"),
    [
        ("/models/hub/models--A--B/snapshots/c0", "/data/b"),
        ("/models/hub/models--A--B/snapshots/c0/config.json", "/data/b/config.json"),
        (
            '{"num":3,"model":"/models/hub/models--A--B/snapshots/c0"}',
            '{"num":3,"model":"/data/b"}',
        ),
        ("--chat-template=/models/own.jinja", "--chat-template=/data/own.jinja"),
        ("/models/hub/models--A--B/snapshots/c01", "/data/hub/models--A--B/snapshots/c01"),
        ("/models-of-others/x", "/models-of-others/x"),
        ("/srv/models/x", "/srv/models/x"),
        ("/jit", "/home/me/run.d/kernels"),
    ],
)
def test_a_path_in_a_pod_is_a_path_here(in_a_pod: str, here: str) -> None:
    assert HERE.here(in_a_pod) == here


def test_a_head_in_json_is_found_here_too() -> None:
    argv = ENGINES["vLLM"].argv(vllm_server.SERVER, vllm_server.chain(3))
    head = "/models/hub/models--yuhuili--Eagle3-Qwen3-30B-A3B/snapshots/" + "2" * 40
    machine = replace(HERE, command=None, paths={head: "/data/head"})
    plan = replace(PLAN, arms=(arm_command("four", *argv, engine="vLLM"),))
    (arm,) = plan_here(plan, machine).arms
    assert json.loads(arm.argv[arm.argv.index("--speculative-config") + 1])["model"] == "/data/head"


def test_prompts_answers_and_port_are_of_this_machine() -> None:
    plan = plan_here(replace(PLAN, files={"tickets": "/prompts/tickets/all.jsonl"}), HERE)
    assert (plan.files, plan.results_dir, plan.arms[0].port) == (HERE.files, "/home/me/run.d/results", 31000)


def test_a_round_is_judged_by_the_plan_that_was_carried_out() -> None:
    run = example.run()
    plan = round_plan(example.RUN, run, run.arms, 0, 0)
    job = as_here(round_job(example.RUN, run, plan, ANYWHERE, example.SETTINGS), HERE)
    assert RoundJob(job=job, pod=None).plan == plan_here(plan, HERE)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A) and $(B)", "1 and $(B)"),
        ("$$ $$(A) $A", "$ $(A) $A"),
    ],
)
def test_a_command_is_filled_in_as_the_kubelet_does_it(text: str, result: str) -> None:
    assert expanded(text, {"A": "1"}) == result


def of(*variables: dict[str, Any]) -> dict[str, Any]:
    return {"env": list(variables)}


SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}


def test_variables_have_their_values() -> None:
    container = of(
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)0"},
        {"name": "HF_HUB_CACHE", "value": "/models/hub"},
        {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        SECRET,
    )
    assert process_environment(container, HERE, {"KEY": "secret"}, POD) == {
        "A": "1",
        "B": "10",
        "HF_HUB_CACHE": "/data/hub",
        "POD_UID": "u-1",
        "KEY": "secret",
    }


def test_a_value_that_is_in_the_cluster_has_to_be_given() -> None:
    with pytest.raises(UnsetVariableError, match="--env KEY=VALUE"):
        process_environment(of(SECRET), HERE, {}, POD)


def test_a_note_tells_how_it_was_measured_and_no_secret(says: Says) -> None:
    machine = replace(HERE, env={"OMP_NUM_THREADS": "1", "HF_TOKEN": "hf_secret"}, devices=("0", "1"))
    assert "hf_secret" not in machine.note
    says(machine.note)


def test_a_note_tells_what_the_servers_inherit_and_read(says: Says) -> None:
    """Else two runs of one file would differ by what somebody had exported, and nothing would tell."""
    environ = {
        "HOME": "/home/me", "OMP_NUM_THREADS": "1", "VLLM_API_KEY": "sk", "CUDA_LAUNCH_BLOCKING": "1", "SGLANG_X": "2",
        "CUDA_VISIBLE_DEVICES": "3", "CUDA_HOME": "/usr/local/cuda", "NCCL_VERSION": "2.27", "PYTHONPATH": "/src",
    }  # fmt: skip
    machine = replace(HERE, command=None, inherited=read_by_engines(environ, {"SGLANG_X"}))
    assert machine.note.endswith(" CUDA_LAUNCH_BLOCKING=1 OMP_NUM_THREADS=1 PYTHONPATH=/src VLLM_API_KEY=***")
    says(machine.note)


def test_no_secret_of_a_command_or_an_address_is_written_down() -> None:
    command = ("env", "HF_TOKEN=hf_x", "serve", "--api-key", "k1", "--admin-api-key=k2", "--tokenizer-path", "/t")
    env = {"HTTPS_PROXY": "http://me:pw@proxy:3128", "TOKENIZERS_PARALLELISM": "false", "PGPASSWD": "pw"}
    note = replace(HERE, command=command, env=env).note
    assert " env HF_TOKEN=*** serve --api-key *** --admin-api-key=*** --tokenizer-path /t; " in note
    assert " HTTPS_PROXY=http://***@proxy:3128 TOKENIZERS_PARALLELISM=false PGPASSWD=***" in note


def test_a_virtual_environment_is_told_and_not_the_terminals_path() -> None:
    """Else a run could be gone on with only where the PATH is the same."""
    machine = replace(HERE, command=None, env={"VIRTUAL_ENV": "/opt/sglang", "PATH": "/opt/sglang/bin:/usr/bin"})
    assert machine.note.endswith(" VIRTUAL_ENV=/opt/sglang")


def test_what_no_process_here_does_is_told() -> None:
    template = {"spec": {"containers": [{"name": "server"}, {"name": "proxy"}], "initContainers": [{"name": "certs"}]}}
    engine = replace(example.server().engine, pod_template=template)
    (note,) = left_out(engine)
    assert note.startswith("engine.podTemplate: certs, proxy ")
    assert list(left_out(example.server().engine)) == []


@pytest.mark.parametrize(
    ("machine", "differ"),
    [
        ({}, False),
        ({"env": {"VIRTUAL_ENV": "/opt/sglang", "PATH": "/opt/sglang/bin:/usr/bin"}}, False),
        ({"env": {"SAID": "1", "TOKEN": "from a Secret"}}, False),
        ({"env": {"SAID": "2"}}, True),
        ({"env": {"X": "1"}}, True),
        ({"command": ("python", "-m", "fast")}, True),
        ({"command": ("emulator",), "env": {"PACELINE_EMULATE_VERSION": "0.5.6"}, "emulated": True}, False),
    ],
)
def test_what_servers_had_that_the_spec_does_not_say(machine: dict[str, Any], differ: bool, says: Says) -> None:
    server = example.server()
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    server = replace(server, engine=replace(server.engine, env=({"name": "SAID", "value": "1"}, secret)))
    said = list(otherwise(Machine(name="desk", folder=Path("/tmp"), port=1, **machine), server, ()))
    assert len(said) == differ
    says(*said)


def test_an_arm_with_an_engine_of_its_own_has_a_program_of_its_own(says: Says) -> None:
    shared = example.server()
    arm = Arm(name="next", engine=replace(shared.engine, version="0.5.24", image="sglang:0.5.24"))
    own = Program(command=("python", "-m", "next"), env={"X": "1"})
    machine = replace(HERE, command=None, env={"VIRTUAL_ENV": "/opt/sglang", "PATH": "/opt"}, own={"next": own})
    plan = replace(PLAN, arms=tuple(arm_command(name, *rendered("wide")) for name in ("wide", "next")))
    wide, following = plan_here(plan, machine).arms
    assert wide.argv[:3] == ("python3", "-m", "sglang.launch_server")
    assert following.argv[:4] == ("python", "-m", "next", wide.argv[3])
    assert of_servers(machine.of("next"), {})["X"] == "1"
    assert "VIRTUAL_ENV" not in of_servers(machine.of("next"), {})
    says(machine.note, *otherwise(machine, shared, (arm,)))
