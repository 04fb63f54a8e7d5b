"""The emulated sglang-jax as operator and client see it, held to captures of the real 0.1.0rc0 and to its wheel."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from tests.contract.make_sglang_jax_flags import compact
from tests.support.jax_servers import BASELINE, JAX, arm, server
from tests.support.running import CALM, IMAGE, PACKAGES, PATIENCE, QUICK, Running, events, free_port, model

from paceline.core import Arm, Server
from paceline.engines.log_tail import failure_line
from paceline.engines.probe import Scrape
from paceline.engines.sglang_jax.rules import LISTED
from paceline_emulator.sglang_jax import flags

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
PAGES = ("--page-size", "64")
CAPTURES = Path(__file__).parent / "captures" / "sglang_jax"
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
    """Exit code of a server that ends by itself, and what a person reads of it."""
    process = launch(log, "--model-path", target, "--port", str(free_port()), *argv)
    try:
        return process.wait(PATIENCE), failure_line(log.read_text())
    finally:
        process.kill()
        process.wait()


def last_line(log: str) -> str:
    """Without its stamp."""
    return log.strip().splitlines()[-1].partition("] ")[2]


def speculating(head: str, algorithm: str = "EAGLE3", shape: tuple[str, ...] = CARD) -> tuple[str, ...]:
    return ("--speculative-algorithm", algorithm, "--speculative-draft-model-path", head, *shape)


# flags


def test_the_two_lists_are_of_one_reading() -> None:
    listed = json.loads((files("paceline.engines.sglang_jax") / "data" / f"flags-{LISTED}.json").read_text())["flags"]
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


@pytest.mark.parametrize(
    "flag",
    [
        "--grammar-backend=xgrammar",
        "--reasoning-parser=gpt-oss",
        "--tool-call-parser=llama3",
        "--lora-target-modules=embed_tokens",
    ],
)
def test_a_value_that_is_none_of_a_flags_choices_exits_with_2(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """Whose choices stand in another file of the wheel."""
    assert JAX.refusals(server(flag), (BASELINE,))
    with pytest.raises(SystemExit) as ended:
        flags.parse(["--model-path", "m", flag])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


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
    code, last = refused(target, log, *arguments(asked, candidate, head))
    assert (code, last[: len(said)]) == (1, said)


def arguments(asked: Server, candidate: Arm, head: str) -> tuple[str, ...]:
    """What the operator starts it with, but for its models and ports."""
    argv = JAX.argv(asked, candidate)
    return tuple(head if word.startswith("/models/") else word for word in argv[argv.index("--tp-size") :])


def test_what_its_scheduler_finds_out_kills_it(target: str, head: str, log: Path) -> None:
    """It has loaded by then; the last line is that of the real one, and the reason stands before it."""
    asked = server("--kv-cache-dtype=fp8_e4m3")
    assert JAX.refusals(asked, (BASELINE, arm()))
    real = (CAPTURES / "refused_fp8.log").read_text()
    code, said = refused(target, log, *arguments(asked, arm(), head))
    assert (code, said) == (-9, failure_line(real))
    assert last_line(log.read_text()) == last_line(real)


def test_as_pid_1_it_leaves_with_0(target: str, tmp_path: Path) -> None:
    """The kernel does not let PID 1 kill itself: 0 is no success."""
    argv = ("-m", "paceline_emulator.sglang_jax", "--model-path", target, "--kv-cache-dtype=fp8_e4m3")
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, *argv],
        env={**os.environ, **QUICK},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
    assert failure_line(done.stderr.decode()) == "ValueError: Unsupported kv_cache_dtype: fp8_e4m3."


def test_speculation_with_pages_of_one_token_ends_it_when_it_is_idle(target: str, head: str, log: Path) -> None:
    """After its warm-up; refused at the desk."""
    asked = server("--page-size=1")
    assert [one.rule for one in JAX.refusals(asked, (BASELINE, arm()))] == ["page-size"]
    real = (CAPTURES / "eagle3_page1_dies.log").read_text()
    code, said = refused(target, log, *arguments(asked, arm(), head))
    assert (code, said) == (-9, failure_line(real))
    ours = log.read_text()
    assert last_line(ours) == last_line(real)
    assert "fired up and ready to roll" in ours


@pytest.mark.parametrize("flags", [(*CARD, *PAGES), (*CARD, "--disable-radix-cache"), None])
def test_what_frees_its_tokens_lives_on(target: str, head: str, log: Path, flags: tuple[str, ...] | None) -> None:
    """Larger pages, no prefix cache, no speculation: as the real ones did."""
    with running(target, log, *(() if flags is None else speculating(head, shape=flags))) as found:
        assert found.post("/v1/chat/completions", CHAT).status == 200
        time.sleep(0.5)
        assert found.get("/health").status == 200


def test_a_branching_tree_is_found_out_at_the_first_draft(target: str, head: str, log: Path) -> None:
    """The API refuses it: `topK must be 1`."""
    shape = ("--speculative-eagle-topk", "2", "--disable-overlap-schedule")
    assert refused(target, log, *speculating(head, shape=shape)) == (
        -9, "TypeError: object of type 'NoneType' has no len()",
    )  # fmt: skip


def test_a_target_without_the_hook_is_found_out_after_loading(tmp_path: Path, head: str, log: Path) -> None:
    moe = model(tmp_path / "moe", {**TARGET, "architectures": ["Qwen3MoeForCausalLM"]})
    code, last = refused(moe, log, *speculating(head))
    assert (code, last) == (
        -9, "AttributeError: 'Qwen3MoeForCausalLM' object has no attribute 'set_eagle3_layers_to_capture'",
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
    with running(target, log, *speculating(head), *PAGES, "--tp-size", "4") as found:
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
    with running(target, log, *speculating(head), *PAGES) as found:
        before = scrape(found, log)
        streamed = [
            found.post("/v1/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
            for _ in range(3)
        ]
        seen = probe.speculation(before, scrape(found, log))
        steps = found.get("/get_server_info").json["internal_states"][0]["forward_ct_decode"]
    assert [events(answer.text)[-1]["usage"]["completion_tokens"] for answer in streamed] == [60, 60, 60]
    assert seen.retractions == 0
    assert seen.verify_calls is not None
    assert 0 < seen.verify_calls <= steps, "one request at a time: a verify call is a step"
    assert seen.accept_length is not None
    assert seen.accept_length == pytest.approx(3 * 59 / seen.verify_calls, rel=0.05), "the last call may overshoot"


def scrape(found: Running, log: Path) -> Scrape:
    return Scrape(pages={"/get_server_info": found.get("/get_server_info").text}, log=log.read_text())


def when_told(found: Running, log: Path) -> Scrape:
    """An answer is there before the line of its last step."""
    told = ""
    while told != (told := log.read_text()):
        time.sleep(0.5)
    return scrape(found, log)


LENGTHS = (6, 12, 18, 24)
"""Of four requests at once that the real server answered, each token by itself: acceptance length 1."""


def test_verify_calls_of_the_real_server_are_those_of_its_requests() -> None:
    """Every token but the first is a verify call; three requests ended while others ran, and were logged once more."""
    info, log = (CAPTURES / "eagle3" / name for name in ("server_info.json", "server.log"))
    answers = [json.loads((CAPTURES / "eagle3" / f"four_{length}.json").read_text()) for length in LENGTHS]
    assert tuple(one["meta_info"]["completion_tokens"] for one in answers) == LENGTHS
    pages = {"/get_server_info": info.read_text()}
    four, others, _ = log.read_text().partition("POST /v1/chat/completions")
    assert others
    seen = JAX.probe(LISTED).speculation(Scrape(pages=pages), Scrape(pages=pages, log=four))
    assert (seen.accept_length, seen.verify_calls) == (1.0, sum(LENGTHS) - len(LENGTHS))
    assert JAX.probe(LISTED).kv_tokens(Scrape(pages=pages)) == 8192


def test_verify_calls_of_a_real_closed_loop_are_those_of_its_requests() -> None:
    """A prefill, and a first step by itself, stand between the lines of the others. They add up to 101."""
    log = (CAPTURES / "eagle3" / "closed_loop.log").read_text()
    lengths = json.loads(log.splitlines()[1].removeprefix("# "))
    pages = {"/get_server_info": (CAPTURES / "eagle3" / "server_info.json").read_text()}
    seen = JAX.probe(LISTED).speculation(Scrape(pages=pages), Scrape(pages=pages, log=log))
    assert (len(lengths), seen.accept_length, seen.verify_calls) == (12, 1.0, sum(lengths) - len(lengths))


def test_verify_calls_of_a_closed_loop_are_those_of_its_requests(target: str, tmp_path: Path, log: Path) -> None:
    """As of the real one; where a request ends in the very step that a prefill is launched behind, one is too many.
    How often that happens, a busy machine decides; counted from the lines alone, nearly every request had one."""
    stranger = model(tmp_path / "stranger", {**HEAD, "hidden_size": 64})
    lengths = [5 + 7 * number % 23 for number in range(24)]
    with running(target, log, *speculating(stranger), *PAGES) as found:
        before = scrape(found, log)
        with ThreadPoolExecutor(3) as clients:
            asked = [{**CHAT, "max_tokens": length} for length in lengths]
            list(clients.map(lambda body: found.post("/v1/chat/completions", body), asked))
        after = when_told(found, log)
    seen = JAX.probe(LISTED).speculation(before, after)
    assert seen.verify_calls is not None
    assert 0 <= seen.verify_calls - (sum(lengths) - len(lengths)) < len(lengths) / 2
    counts = map(int, re.findall(r"Decode batch\. #running-req: (\d+)", after.log[len(before.log) :]))
    assert sum(counts) > seen.verify_calls + len(lengths) / 2


def test_the_log_holds_what_has_ended_once_more(target: str, tmp_path: Path, log: Path) -> None:
    """A head of another target accepts nothing, so the emulated server's steps can be counted as those of the real one
    above, where the next line tells; and after the last there is one more line, without acceptance."""
    stranger = model(tmp_path / "stranger", {**HEAD, "hidden_size": 64})
    with running(target, log, *speculating(stranger), *PAGES) as found:
        before = scrape(found, log)
        with ThreadPoolExecutor() as clients:
            asked = [{**CHAT, "max_tokens": length} for length in LENGTHS]
            list(clients.map(lambda body: found.post("/v1/chat/completions", body), asked))
        after = scrape(found, log)
    seen = JAX.probe(LISTED).speculation(before, after)
    assert (seen.accept_length, seen.verify_calls) == (1.0, sum(LENGTHS) - len(LENGTHS))
    counts = [int(count) for count in re.findall(r"Decode batch\. #running-req: (\d+)", after.log[len(before.log) :])]
    assert sum(counts) == seen.verify_calls + len(LENGTHS), "each one once more, the last one by itself"
    assert re.search(r"Prefill batch\. #new-seq: 1, #new-token: 64, ", after.log), "whole pages"
    last = re.findall(r"Decode batch\. .*", after.log)[-1]
    assert last.startswith("Decode batch. #running-req: 1, #token: 0, token usage: 0.00, gen throughput")


def test_without_overlap_a_line_has_who_was_verified(target: str, head: str, log: Path) -> None:
    with running(target, log, *speculating(head), *PAGES, "--disable-overlap-schedule") as found:
        found.post("/v1/chat/completions", CHAT)
    lines = re.findall(r"Decode batch\. #running-req: .*", log.read_text())
    assert lines
    assert all("accept-len" in line for line in lines)


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
