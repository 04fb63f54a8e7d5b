"""Whole rounds: wrapper, client, SGLang's own benchmark client and servers, as processes on loopback."""

import dataclasses
import gzip
import hashlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.rounds import arm_command, with_arms
from tests.unit.round.pod import CHAT_8, CODE_1, Arms, Start, workload
from tests.unit.round.test_wrapper import DAEMON

from paceline import __version__
from paceline.core import Slo
from paceline.evidence import ArmCommand, Scalar, decode
from paceline.pods.round import load

FAKE = Path(__file__).with_name("fake_server.py")


def emulated(models: Path, port: int, name: str, *speculative: str, **expected: Scalar) -> ArmCommand:
    argv = (
        sys.executable, "-m", "paceline_emulator",
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
    return arm_command(name, *argv, candidate=bool(speculative), expected=expected)


def published_pair(models: Path, port: int) -> Arms:
    """The baseline, and the tree that the published head is 1.52 times as fast with on code at batch 1."""
    tree = ("--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "8")
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    return (
        emulated(models, port, "baseline", speculative_algorithm=None),
        emulated(models, port, "wide", *head, *tree, speculative_num_steps=3, speculative_num_draft_tokens=8),
    )


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    return published_pair(models, port)


def fake(port: int, name: str, *options: str, **expected: Scalar) -> ArmCommand:
    argv = (sys.executable, str(FAKE), "--port", str(port), *options)
    return arm_command(name, *argv, candidate=name != "baseline", expected=expected)


def test_a_round_of_the_emulated_pair(start: Start, pair: Arms, models: Path) -> None:
    every_answer = dataclasses.replace(CODE_1.dataset, slo=Slo(ttft=60.0, itl=60.0))
    outcome = start(pair, dataclasses.replace(CODE_1, dataset=every_answer), CHAT_8).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    result = outcome.result
    assert (result.round, result.gpus, result.engine_version, result.emulated) == (
        2, ("GPU-0", "GPU-1"), "0.5.23+emulated", True,
    )  # fmt: skip
    assert result.paceline == __version__
    baseline, wide = result.replicates
    assert all(replicate.start_seconds for replicate in result.replicates)
    for replicate in result.replicates:
        took = replicate.seconds
        assert None not in (took.weights, took.warm_up, took.loads, took.end)
        assert took.loads == pytest.approx(sum(point.duration or 0 for point in replicate.points), rel=1e-2)
    assert baseline.rest_sha256 == wide.rest_sha256, "all but what speculation moves is equal"
    assert (baseline.differs, wide.differs) == ((), ())
    assert (baseline.kv_tokens, wide.kv_tokens) == (1_000_000, 970_000)
    speed_up = wide.points[0].steady_throughput / baseline.points[0].steady_throughput  # type: ignore[operator]
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
        assert 1 <= len(point.accepted_at) <= 3
        assert 1 + sum(point.accepted_at) == pytest.approx(point.accept_length, rel=0.25)
        assert list(point.accepted_at) == sorted(point.accepted_at, reverse=True)
        assert None not in (point.worst_decile, point.median_prompt, point.best_decile, point.slower_prompts)
        assert point.worst_decile <= point.median_prompt <= point.best_decile  # type: ignore[operator]
    assert 1.2 < wide.points[0].median_prompt < 1.9  # type: ignore[operator]
    for replicate in result.replicates:
        code, chat = replicate.points
        assert (code.good_requests, code.good_tokens) == (code.completed, code.output_tokens)
        assert code.goodput == pytest.approx(code.completed / code.duration, rel=1e-3)  # type: ignore[operator]
        assert (chat.good_requests, chat.goodput) == (None, None)
        assert code.request_spread is None, "five requests have no spread"
        assert 0 < chat.request_spread < 1  # type: ignore[operator]
        assert code.mean_input is not None
        assert code.mean_input > 20
        assert None not in (code.p50_input, code.p99_input, code.p50_output, code.p99_output)
    assert [point.mean_input for point in wide.points] == [point.mean_input for point in baseline.points]
    assert (baseline.points[0].accepted_at, baseline.points[0].worst_decile) == ((), None)
    assert result.overhead_seconds < 30

    file = models / "results" / "2-0.jsonl.gz"
    content = file.read_bytes()
    assert (result.lines_sha256, result.lines_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    with gzip.open(file, "rt") as lines:
        kept = [json.loads(line) for line in lines]
    reports = [line for line in kept if "report" in line]
    assert [line["workload"] for line in reports] == ["code@1", "chat@8"] * 2
    assert len(reports[0]["report"]["generated_texts"]) == 5
    medians = [line["warm_up_medians"] for line in kept if "warm_up_medians" in line]
    assert [len(each) for each in medians] == [p.warm_up_windows for each in result.replicates for p in each.points]


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
        PACELINE_EMULATE_DIE_AFTER_REQUESTS="40",
        PACELINE_EMULATE_DIE_AFTER_REQUESTS_WHEN="speculative",
    ).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    wide, baseline = outcome.result.replicates
    assert wide.exit_code is not None
    assert wide.error
    assert [point.workload for point in wide.points] == ["code@1"]
    assert not baseline.error
    assert {arm for (arm, _), one in outcome.judged.items() if one.valid} == {"baseline"}


def test_an_arms_whole_container_is_killed(start: Start, port: int) -> None:
    """What the arm before it has reported stands in the log."""
    arms = fake(port, "baseline"), fake(port, "wide"), fake(port, "narrow")
    pod = start(arms, CODE_1)
    while "wide: starting" not in (pod.directory / "client.log").read_text():
        time.sleep(0.05)
    assert pod.now
    pod.now.kill()
    pod.turns.join(10)
    told = decode((pod.directory / "client.log").read_text())
    assert [one.arm for one in told.replicates] == ["baseline"]
    assert (told.gpus, [point.workload for point in told.replicates[0].points]) == (("GPU-0", "GPU-1"), [CODE_1.name])


def test_a_daemon_of_one_arm_is_not_beside_the_next(start: Start, port: int, models: Path) -> None:
    """As in a container: the wrapper is the first of its processes."""
    sign, baseline = models / "sign", fake(port, "baseline")
    both = f"{shlex.join((sys.executable, '-c', DAEMON, str(sign)))} & exec {shlex.join(baseline.argv)}"
    arms = (dataclasses.replace(baseline, argv=("sh", "-c", both)), fake(port, "wide", "--delay", "2", "--length", "3"))
    outcome = start(arms, CODE_1, alone=True).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.message
    assert [one.error for one in outcome.result.replicates] == ["", ""]
    assert sign.stat().st_mtime < (models / "ctl" / "in" / "wide" / "start").stat().st_mtime


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
    silent = {"PACELINE_HEARTBEAT_SECONDS": "4"}
    pod = start((fake(port, "baseline", "--ignore-term"),), workload("code", 1, 90, 4000), **silent)
    server = pod.server_pid()
    pod.client.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    pod.turns.join(60)
    assert pod.ended == [70]
    assert time.monotonic() - killed < 20
    assert not Path(f"/proc/{server}").exists()
    assert not (pod.directory / "message").exists()


def texts(bodies: Sequence[str]) -> list[str]:
    return [json.loads(body)["messages"][0]["content"] for body in bodies]


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
    first, second = ([text for text, _ in requests[-24:]] for requests in sent)
    assert first == second == texts(load.prompts_of_load(outcome.plan, one_by_one))
    *warm_up, bare = (text for text, _ in sent[0][:5])
    assert warm_up == texts(
        load.warm_up_prompts(outcome.plan, one_by_one, load.prompts_of_load(outcome.plan, one_by_one))
    )
    assert not {*warm_up} & {*first}
    assert bare == "."
    assert [text for text, _ in sent[0][5:10]] == [*warm_up, bare]
    body = sent[0][-1][1]
    assert (body["max_completion_tokens"], body["temperature"]) == (8, 0.0)
    assert body["stream_options"] == {"include_usage": True}


def test_requests_of_a_dataset_at_the_models_own_sampling_name_no_temperature(
    start: Start, port: int, models: Path
) -> None:
    """null, which to SGLang and vLLM is none."""
    log = models / "baseline.jsonl"
    code = workload("code", 1, 3, 8)
    sampled = dataclasses.replace(code, dataset=dataclasses.replace(code.dataset, temperature=None))
    assert start((fake(port, "baseline", "--log", str(log)),), sampled).finish().client == 0
    bodies = [json.loads(line)[1] for line in log.read_text().splitlines()]
    assert {body["temperature"] for body in bodies} == {None}


def test_a_server_that_runs_with_other_arguments_is_not_measured(start: Start, port: int) -> None:
    arms = (fake(port, "wide", "--steps", "1", speculative_num_steps=3),)
    (replicate,) = start(arms, CODE_1).finish().result.replicates
    assert "speculative_num_steps=1" in replicate.error
    assert replicate.points == ()


def test_a_volume_that_cannot_be_written_is_a_note(start: Start, port: int, models: Path) -> None:
    (models / "file").write_text("")
    outcome = start(
        (fake(port, "baseline"),), CODE_1,
        change=lambda plan: dataclasses.replace(plan, results_dir=str(models / "file" / "results")),
    ).finish()  # fmt: skip
    assert outcome.judged["baseline", "code@1"].valid
    assert "results not kept" in outcome.result.notes[0]
    assert outcome.result.lines_sha256 == ""


def test_lines_are_of_this_pod_alone(start: Start, port: int, models: Path) -> None:
    """An earlier pod of the same round and try was stopped in the middle of a line, as by `suspend`."""
    file = models / "results" / "2-0.jsonl.gz"
    file.parent.mkdir()
    file.write_bytes(gzip.compress(b'{"arm": "baseline", "workload": "code@1", "report": {}}')[:-9])
    result = start((fake(port, "baseline"),), CODE_1).finish().result
    content = file.read_bytes()
    assert (result.lines_sha256, result.lines_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
    assert [line["report"]["errors"] for line in lines if "report" in line] == [[""] * 5]


def test_a_round_that_cannot_be_run_says_why_and_frees_the_server(start: Start, port: int) -> None:
    other = start((fake(port, "baseline"),), CODE_1, change=lambda plan: with_arms(plan, engine="Other"))
    outcome = other.finish()
    assert (outcome.client, outcome.wrapper) == (1, 0)
    assert "Other" in outcome.message
    assert "starting" not in outcome.log
