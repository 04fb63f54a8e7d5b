"""The emulated sglang-jax as operator and client see it, held to what is known of 0.1.0rc0 from its wheel."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from tests.contract.make_sglang_jax_flags import compact
from tests.contract.running import CALM, IMAGE, PACKAGES, PATIENCE, QUICK, Running, events, free_port, model
from tests.unit.engines.test_sglang_jax import BASELINE, JAX, arm, server

from paceline.emulator.sglang_jax import flags
from paceline.engines.probe import Look
from paceline.engines.sglang_jax.rules import LISTED

TARGET = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}
HEAD = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4096, "draft_vocab_size": 32000}
CARD = (
    "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
)  # fmt: skip
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 60, "ignore_eos": True}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("target"), TARGET)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("head"), HEAD)


def launch(log: Path, *argv: str, **env: str) -> "subprocess.Popen[bytes]":
    """As the operator starts it."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "sgl_jax.launch_server", *argv],
        stdout=subprocess.DEVNULL,
        stderr=log.open("wb"),
        env={**os.environ, "PYTHONPATH": f"{PACKAGES}:{IMAGE}", **QUICK, **CALM, **env},
    )


@contextmanager
def running(target: str, log: Path, *argv: str, **env: str) -> Iterator[Running]:
    port = free_port()
    flags = ("--model-path", target, "--port", str(port), "--decode-log-interval", "1")
    process = launch(log, *flags, *argv, **env)
    found = Running(process, f"http://127.0.0.1:{port}", log)
    deadline = time.monotonic() + PATIENCE
    try:
        while not answers(found):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield found
    finally:
        process.kill()
        process.wait()


def answers(found: Running) -> bool:
    try:
        return found.get("/health_generate").status == 200
    except OSError:
        return False


def refused(target: str, log: Path, *argv: str) -> tuple[int, str]:
    """Exit code and the last line of a server that ends by itself."""
    process = launch(log, "--model-path", target, "--port", str(free_port()), *argv)
    try:
        return process.wait(PATIENCE), log.read_text().strip().splitlines()[-1]
    finally:
        process.kill()
        process.wait()


def speculating(head: str, algorithm: str = "EAGLE3", shape: tuple[str, ...] = CARD) -> tuple[str, ...]:
    return ("--speculative-algorithm", algorithm, "--speculative-draft-model-path", head, *shape)


# flags


def test_the_two_lists_are_of_one_reading() -> None:
    listed = json.loads((files("paceline.engines") / "data" / f"sglang-jax-{LISTED}.json").read_text())["flags"]
    assert listed == [compact(flag) for flag in flags.listed()]


@pytest.mark.parametrize(
    ("candidate", "args"),
    [
        (BASELINE, ()),
        (arm(), ("--page-size=64", "--precompile-bs-paddings", "16", "32")),
        (arm("NEXTN"), ()),
        (arm("DFLASH", block_size=16), ("--grammar-backend=none",)),
    ],
    ids=["baseline", "eagle3", "nextn", "dflash"],
)
def test_every_argv_is_accepted(candidate, args: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    argv = JAX.argv(server(*args), candidate)
    resolved = flags.parse(argv[argv.index("sgl_jax.launch_server") + 1 :])
    expected = JAX.expected(server(*args), candidate)
    assert {name: resolved[name] for name in expected} == expected
    assert set(JAX.compared) <= set(resolved)


def test_an_unknown_flag_exits_with_2(target: str, log: Path) -> None:
    code, last = refused(target, log, "--enable-flux-capacitor")
    assert (code, "unrecognized arguments: --enable-flux-capacitor" in last) == (2, True)


# what it refuses, and what we refuse before it


def test_its_own_defaults_are_refused(target: str, head: str, log: Path) -> None:
    """4 steps, topk 5, 4 tokens."""
    code, last = refused(target, log, *speculating(head, shape=()))
    assert code == 1
    assert last.startswith("ValueError: Speculative overlap scheduler only supports DFLASH, EAGLE3+FA, or NEXTN with")
    code, _ = refused(target, log, *speculating(head, shape=("--speculative-eagle-topk", "1")))
    assert code == 1, "4 tokens are not 4 + 1"


@pytest.mark.parametrize(
    ("args", "candidate", "said"),
    [
        ((), arm("EAGLE"), "ValueError: Speculative overlap scheduler"),
        (("--attention-backend=native",), arm(), "ValueError: Speculative overlap scheduler"),
        (("--kv-cache-dtype=fp8_e5m2",), arm(), "ValueError: Unsupported kv_cache_dtype: fp8_e5m2."),
        ((), arm("DFLASH", block_size=16), "ValueError: DFLASH does not support constrained decoding."),
        (
            ("--grammar-backend=none", "--enable-lora"),
            arm("DFLASH", block_size=16),
            "ValueError: DFLASH does not support LoRA.",
        ),
        (("--enable-recurrent-extra-buffer",), arm(), "ValueError: --enable-recurrent-extra-buffer does not support"),
    ],
)
def test_what_the_operator_refuses_the_server_would(  # type: ignore[no-untyped-def]
    target: str, head: str, log: Path, args: tuple[str, ...], candidate, said: str
) -> None:
    asked = server(*args)
    assert JAX.refusals(asked, (BASELINE, candidate))
    argv = JAX.argv(asked, candidate)
    argv = argv[argv.index("--tp-size") :]
    code, last = refused(target, log, *(head if word.startswith("/models/") else word for word in argv))
    assert (code, last[: len(said)]) == (1, said)


def test_a_branching_tree_is_found_out_at_the_first_draft(target: str, head: str, log: Path) -> None:
    """The API refuses it: `topK must be 1`."""
    shape = ("--speculative-eagle-topk", "2", "--disable-overlap-schedule")
    assert refused(target, log, *speculating(head, shape=shape)) == (
        1, "TypeError: object of type 'NoneType' has no len()",
    )  # fmt: skip


def test_a_target_without_the_hook_is_found_out_after_loading(tmp_path: Path, head: str, log: Path) -> None:
    moe = model(tmp_path / "moe", {**TARGET, "architectures": ["Qwen3MoeForCausalLM"]})
    code, last = refused(moe, log, *speculating(head))
    assert (code, last) == (
        1, "AttributeError: 'Qwen3MoeForCausalLM' object has no attribute 'set_eagle3_layers_to_capture'",
    )  # fmt: skip
    assert "Qwen3MoeForCausalLM" not in (JAX.eagle3_targets("0.1.0") or ())


# pages and log


def test_health_says_nothing_and_a_generation_says_ready(target: str, log: Path) -> None:
    with running(target, log, "--served-model-name", "m") as found:
        assert found.get("/health").status == 200
        assert found.get("/health_generate").seconds >= 1, "it looks once a second"
        assert [one["id"] for one in found.get("/v1/models").json["data"]] == ["m"]
        assert found.get("/get_model_info").json["is_generation"] is True
        assert found.get("/metrics").status == 404


def test_the_server_info_has_the_resolved_arguments_and_no_acceptance(target: str, head: str, log: Path) -> None:
    with running(target, log, *speculating(head), "--tp-size", "4") as found:
        info = found.get("/get_server_info").json
    assert {name: info[name] for name in ("tp_size", "speculative_num_steps", "random_seed")} == {
        "tp_size": 4, "speculative_num_steps": 3, "random_seed": 42,
    }  # fmt: skip
    assert re.fullmatch(r"0\.1\.0rc0\+emulated", info["version"])
    assert "avg_spec_accept_length" not in info["internal_states"][0]
    assert set(JAX.compared) <= set(info)


def test_the_log_tells_what_clients_received(target: str, head: str, log: Path) -> None:
    """Every token but the first of an answer comes of a verify call, and the probe finds them all."""
    probe = JAX.probe("0.1.0")
    with running(target, log, *speculating(head)) as found:
        before = Look(pages={}, log=log.read_text())
        streamed = [
            found.post("/v1/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
            for _ in range(3)
        ]
        seen = probe.speculation(before, Look(pages={}, log=log.read_text()))
        steps = found.get("/get_server_info").json["internal_states"][0]["forward_ct_decode"]
    assert [events(answer.text)[-1]["usage"]["completion_tokens"] for answer in streamed] == [60, 60, 60]
    assert seen.retractions == 0
    assert seen.verify_calls is not None
    assert 0 < seen.verify_calls <= steps, "one request at a time: a verify call is a step"
    assert seen.accept_length is not None
    assert seen.accept_length == pytest.approx(3 * 59 / seen.verify_calls, rel=0.05), "the last call may overshoot"


def test_flushing(target: str, log: Path) -> None:
    with running(target, log) as found:
        assert found.post("/v1/chat/completions", CHAT).status == 200
        assert found.post("/flush_cache").status == 200
        assert found.get("/get_server_info").json["internal_states"][0]["forward_ct_decode"] == 0


def test_a_key_is_asked_for_except_by_probes(target: str, log: Path) -> None:
    with running(target, log, "--api-key", "k") as found:
        assert found.get("/health").status == 200
        assert found.post("/flush_cache").status == 401
        assert found.post("/flush_cache", Authorization="Bearer k").status == 200
