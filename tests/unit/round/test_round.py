"""Whole rounds: wrapper, client, SGLang's own benchmark client and servers, as processes on loopback."""

import dataclasses
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline import render
from paceline.core import Dataset, Workload
from paceline.evidence import ENVIRONMENT, ArmCommand, Judged, RoundPlan, RoundResult, Scalar, decode, judge
from paceline.hub import tokenizer
from paceline.pods.round import load

WRAPPER = Path(render.__file__).with_name("wrapper.sh")
FAKE = Path(__file__).with_name("fake_server.py")
PATIENCE = 90.0
ENVIRON = {
    "PACELINE_HEARTBEAT_SECONDS": "4",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_EMULATE_STARTUP_SECONDS": "0.2",
    "PACELINE_EMULATE_WARMUP_SECONDS": "0.1",
    "PACELINE_EMULATE_DRAIN_POLL_SECONDS": "0.1",
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
}
TARGET = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_experts": 512,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
}
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 2048,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 4096,
}


def workload(dataset: str, concurrency: int, requests: int, max_tokens: int) -> Workload:
    source = Dataset(name=dataset, source=f"builtin://{dataset}", requests=requests, max_tokens=max_tokens)
    return Workload(dataset=source, concurrency=concurrency)


CODE_1 = workload("code", 1, 5, 48)
CHAT_8 = workload("chat", 8, 32, 32)


@dataclass(frozen=True)
class Outcome:
    plan: RoundPlan
    client: int
    wrapper: int
    message: str
    log: str

    @property
    def result(self) -> RoundResult:
        return decode(self.message)

    @property
    def judged(self) -> dict[tuple[str, str], Judged]:
        return {(one.arm, one.workload): one for one in judge(self.plan, self.result)}


@dataclass
class Pod:
    """A pod of a round, as two processes and a directory."""

    directory: Path
    server: "subprocess.Popen[bytes]"
    client: "subprocess.Popen[bytes]"
    plan: RoundPlan

    def finish(self) -> Outcome:
        client, wrapper = self.client.wait(PATIENCE), self.server.wait(PATIENCE)
        message = self.directory / "message"
        log = (self.directory / "client.log").read_text()
        return Outcome(self.plan, client, wrapper, message.read_text() if message.exists() else "", log)

    def server_pid(self) -> int:
        """Of the arm's server, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError, ValueError):
                return int((self.directory / "ctl" / "pid").read_text())
            time.sleep(0.05)
        raise AssertionError("no server was started")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name, config in {"target": TARGET, "head": HEAD}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    for name, content in tokenizer.files().items():
        (tmp_path / "target" / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


Arms = tuple[ArmCommand, ...]
Start = Callable[..., Pod]


@pytest.fixture
def start(models: Path, port: int) -> Iterator[Start]:
    pods: list[Pod] = []

    def start(
        arms: Arms, *workloads: Workload, change: Callable[[RoundPlan], RoundPlan] | None = None, **env: str
    ) -> Pod:
        plan = RoundPlan(
            run="pair-latency-0123456789-1",
            round=2,
            attempt=0,
            engine="SGLang",
            served_name="pair",
            tokenizer=str(models / "target"),
            port=port,
            arms=arms,
            workloads=workloads,
            results_dir=str(models / "results"),
            compared=("attention_backend",),
            start_timeout_seconds=30,
        )
        plan = change(plan) if change else plan
        ctl = models / "ctl"
        ctl.mkdir()
        environment = {
            **os.environ,
            **ENVIRON,
            "PACELINE_CTL": str(ctl),
            "PACELINE_TERMINATION_LOG": str(models / "message"),
            "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1",
            ENVIRONMENT: plan.to_json(),
            **env,
        }
        processes = []
        for name, argv in {
            "server": ["dash", "-c", WRAPPER.read_text()],
            "client": [sys.executable, "-m", "paceline.pods.round"],
        }.items():
            with (models / f"{name}.log").open("wb") as log:
                processes.append(subprocess.Popen(argv, env=environment, stdout=log, stderr=log))
        pods.append(Pod(models, *processes, plan))
        return pods[-1]

    yield start
    for pod in pods:
        for process in (pod.client, pod.server):
            if process.poll() is None:
                process.terminate()  # the wrapper takes its server along
                process.wait(PATIENCE)


def emulated(models: Path, port: int, name: str, *speculative: str, **expected: Scalar) -> ArmCommand:
    argv = (
        sys.executable, "-m", "paceline.emulator",
        "--model-path", str(models / "target"),
        "--served-model-name", "pair",
        "--port", str(port),
        "--tp-size", "4",
        "--attention-backend", "triton",
        "--max-running-requests", "64",
        "--enable-metrics",
        "--random-seed", "0",
        "--decode-log-interval", "10",
        *speculative,
    )  # fmt: skip
    return ArmCommand(name=name, argv=argv, candidate=bool(speculative), expected=expected)


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    """The baseline, and the tree that the published head is 1.52 times as fast with on code at batch 1."""
    tree = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "8")
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    return (
        emulated(models, port, "baseline", speculative_algorithm=None),
        emulated(models, port, "wide", *head, *tree, speculative_num_steps=3, speculative_num_draft_tokens=8),
    )


def fake(port: int, name: str, *options: str, **expected: Scalar) -> ArmCommand:
    argv = (sys.executable, str(FAKE), "--port", str(port), *options)
    return ArmCommand(name=name, argv=argv, candidate=name != "baseline", expected=expected)


def test_a_round_of_the_emulated_pair(start: Start, pair: Arms, models: Path) -> None:
    began = time.monotonic()
    outcome = start(pair, CODE_1, CHAT_8).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert time.monotonic() - began < 60

    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    result = outcome.result
    assert (result.round, result.gpus, result.engine_version, result.emulated) == (
        2, ("GPU-0", "GPU-1"), "0.5.23+emulated", True,
    )  # fmt: skip
    baseline, wide = result.replicates
    assert all(replicate.start_seconds for replicate in result.replicates)
    assert baseline.rest_sha256 != wide.rest_sha256
    speed_up = wide.points[0].output_throughput / baseline.points[0].output_throughput  # type: ignore[operator]
    assert 1.3 < speed_up < 1.7
    assert (baseline.points[0].accept_length, baseline.points[0].verify_calls) == (None, None)
    for point in wide.points:
        assert point.accept_length is not None
        assert 1.5 < point.accept_length < 4
        # Every token but a request's first comes from a verify call.
        assert point.output_tokens is not None
        assert point.verify_calls == pytest.approx(
            (point.output_tokens - point.completed) / point.accept_length, rel=0.15
        )
        assert point.steady_throughput == pytest.approx(point.output_throughput, rel=0.5)
    assert result.overhead_seconds < 30

    with gzip.open(models / "results" / "2-0.jsonl.gz", "rt") as lines:
        kept = [json.loads(line) for line in lines]
    assert [line["workload"] for line in kept if "report" in line] == ["code@1", "chat@8"] * 2
    assert len(kept[1]["report"]["generated_texts"]) == 5


def test_a_benchmark_in_which_half_of_the_requests_fail(start: Start, pair: Arms) -> None:
    outcome = start(pair, CHAT_8, PACELINE_EMULATE_FAIL_FRACTION="0.5").finish()
    assert outcome.client == 0
    for one in outcome.judged.values():
        assert not one.valid
        assert "of 32 requests completed" in one.why


def test_a_server_that_dies_in_the_middle(start: Start, pair: Arms) -> None:
    """The wide arm's scheduler dies after its warm-ups and some requests; the baseline after it still runs."""
    outcome = start(
        pair[::-1],
        CODE_1,
        CHAT_8,
        PACELINE_EMULATE_DIE_AFTER_REQUESTS="20",
        PACELINE_EMULATE_DIE_AFTER_REQUESTS_WHEN="speculative",
    ).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    wide, baseline = outcome.result.replicates
    assert wide.exit_code is not None
    assert wide.error
    assert [point.workload for point in wide.points] == ["code@1"]
    assert not baseline.error
    assert {arm for (arm, _), one in outcome.judged.items() if one.valid} == {"baseline"}


def test_an_arm_that_does_not_start(start: Start, port: int) -> None:
    arms = (fake(port, "wide", "--exit", "2"), fake(port, "baseline"))
    outcome = start(arms, CODE_1).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    wide, baseline = outcome.result.replicates
    assert (wide.exit_code, wide.error) == (2, "ValueError: the draft head does not fit the target")
    assert baseline.points[0].completed == 5


def test_an_unknown_flag_ends_in_the_servers_own_last_line(start: Start, pair: Arms) -> None:
    bogus = dataclasses.replace(pair[0], argv=(*pair[0].argv, "--bogus"))
    outcome = start((bogus,), CODE_1).finish()
    (replicate,) = outcome.result.replicates
    assert replicate.exit_code == 2
    assert "unrecognized arguments: --bogus" in replicate.error


def test_a_client_that_is_killed_gives_the_gpus_back(start: Start, port: int) -> None:
    pod = start((fake(port, "baseline", "--ignore-term"),), workload("code", 1, 90, 4000))
    server = pod.server_pid()
    pod.client.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    assert pod.server.wait(60) == 70
    assert time.monotonic() - killed < 20
    assert not Path(f"/proc/{server}").exists()
    assert not (pod.directory / "message").exists()


def test_every_arm_gets_the_same_prompts_in_the_same_order(start: Start, port: int, models: Path) -> None:
    logs = [models / "baseline.jsonl", models / "narrow.jsonl"]
    arms = (
        fake(port, "baseline", "--log", str(logs[0])),
        fake(port, "narrow", "--log", str(logs[1]), "--steps", "5", "--length", "2.5"),
    )
    one_by_one = workload("code", 1, 24, 8)
    outcome = start(arms, one_by_one).finish()
    assert outcome.client == 0, outcome.log
    sent = [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]
    first, second = ([text for text, _ in requests[1:]] for requests in sent)
    assert first == second
    assert Counter(first) == Counter(load.prompts(one_by_one))
    warm_up = sent[0][0][0]
    assert warm_up in load.warm_up_prompts(one_by_one)
    assert warm_up not in first
    body = sent[0][1][1]
    assert (body["max_completion_tokens"], body["temperature"], body["ignore_eos"]) == (8, 0.0, False)


def test_a_server_that_runs_with_other_arguments_is_not_measured(start: Start, port: int) -> None:
    arms = (fake(port, "wide", "--steps", "1", speculative_num_steps=3),)
    (replicate,) = start(arms, CODE_1).finish().result.replicates
    assert replicate.error == "the server runs with speculative_num_steps=1, not 3"
    assert replicate.points == ()


def test_a_volume_that_cannot_be_written_is_a_note(start: Start, port: int, models: Path) -> None:
    (models / "file").write_text("")
    outcome = start(
        (fake(port, "baseline"),), CODE_1,
        change=lambda plan: dataclasses.replace(plan, results_dir=str(models / "file" / "results")),
    ).finish()  # fmt: skip
    assert outcome.judged["baseline", "code@1"].valid
    assert "results not kept" in outcome.result.notes[0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda plan: dataclasses.replace(plan, tokenizer="/nowhere"), "needs /nowhere/tokenizer.json"),
        (lambda plan: dataclasses.replace(plan, engine="Other"), "cannot measure Other"),
    ],
)
def test_a_round_that_cannot_be_run_says_why_and_frees_the_server(start: Start, port: int, change, why: str) -> None:  # type: ignore[no-untyped-def]
    outcome = start((fake(port, "baseline"),), CODE_1, change=change).finish()
    assert (outcome.client, outcome.wrapper) == (1, 0)
    assert why in outcome.message
    assert "starting" not in outcome.log
