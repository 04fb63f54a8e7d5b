"""The emulated process as Kubernetes and a person see it: start, probes, refusals, draining, faults."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from tests.support.running import (
    HEAD,
    IMAGE,
    PACKAGES,
    PATIENCE,
    QUICK,
    Response,
    Running,
    ask,
    emulated,
    free_port,
    launch,
    model,
    refused,
    total,
    tree,
    wait_ready,
)

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
LONG = {**CHAT, "max_tokens": 150, "ignore_eos": True}
"""About a second."""


def in_background(running: Running, body: object) -> tuple[threading.Thread, list[Response]]:
    answers: list[Response] = []
    thread = threading.Thread(target=lambda: answers.append(running.post("/v1/chat/completions", body)))
    thread.start()
    while running.get("/v1/loads").json["loads"][0]["num_running_reqs"] == 0:
        time.sleep(0.005)
    return thread, answers


class TestStart:
    def test_the_port_opens_only_after_loading_and_is_not_ready_at_once(self, target: str, log: Path) -> None:
        port = free_port()
        env = {"PACELINE_EMULATE_STARTUP_SECONDS": "1.5", "PACELINE_EMULATE_WARMUP_SECONDS": "1"}
        began = time.monotonic()
        process = launch(("--model-path", target, "--port", str(port)), log, env)
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            assert time.monotonic() - began >= 1.5
            url = f"http://127.0.0.1:{port}"
            assert ask(url + "/health", None, {}).status == ask(url + "/ready", None, {}).status == 503
            assert ask(url + "/v1/models", None, {}).status == 200
            wait_ready(Running(process, url, log))
            assert time.monotonic() - began >= 2.5
        finally:
            process.kill()
            process.wait()

    def test_it_listens_on_loopback_unless_told_otherwise(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            info = server.get("/server_info").json
        assert (info["host"], info["version"]) == ("127.0.0.1", "0.5.23+emulated")

    def test_sglang_serve_takes_the_model_as_its_first_word(self, tmp_path: Path) -> None:
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": f"{PACKAGES}:{IMAGE}"}
        command = [str(IMAGE / "bin" / "sglang"), "serve", str(tmp_path)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == f"OSError: {tmp_path} does not appear to have a file named config.json."

    def test_metrics_are_there_only_when_asked_for(self, target: str, log: Path) -> None:
        port = free_port()
        process = launch(("--model-path", target, "--port", str(port)), log, QUICK)
        server = Running(process, f"http://127.0.0.1:{port}", log)
        try:
            wait_ready(server)
            assert server.get("/metrics").status == 404
            assert server.get("/v1/loads").status == 200
        finally:
            process.kill()
            process.wait()


class TestRefusals:
    """Each is quoted to the user from the pod's log, so the last line is the real server's."""

    def test_unknown_flag(self, target: str, log: Path) -> None:
        code, said = refused(target, log, "--foo", "1")
        assert code == 2
        assert said.splitlines()[-1] == "sglang serve: error: unrecognized arguments: --foo 1"

    def test_bad_combination(self, target: str, head: str, log: Path) -> None:
        flags = (*tree(head, 3, 4, 8), "--attention-backend", "trtllm_mha")
        code, said = refused(target, log, *flags)
        assert code == 1
        assert "Traceback" in said
        assert said.splitlines()[-1] == (
            "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding."
        )

    def test_repository_that_is_not_in_the_cache(self, log: Path, tmp_path: Path) -> None:
        code, said = refused("Qwen/Qwen3-Coder-Next", log, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path))
        assert code == 1
        assert said.splitlines()[-1].startswith("OSError: We couldn't connect to 'https://huggingface.co'")

    def test_port_that_is_taken(self, target: str, log: Path, tmp_path: Path) -> None:
        with emulated(target, log) as server:
            port = server.url.rsplit(":", 1)[1]
            code, said = refused(target, tmp_path / "second.log", "--port", port)
        assert code == 1
        assert "while attempting to bind on address" in said


class TestProbes:
    def test_health_never_answers_within_a_second_and_ready_does(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            health, ready = server.get("/health"), server.get("/ready")
        assert (health.status, ready.status) == (200, 200)
        assert health.seconds >= 1.0
        assert ready.seconds < 0.5

    def test_health_without_generation_is_instant(self, target: str, log: Path) -> None:
        with emulated(target, log, SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION="false") as server:
            assert server.get("/health").seconds < 0.5

    def test_a_paused_server_is_alive_but_not_ready(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            server.post("/pause_generation")
            assert (server.get("/ready").status, server.get("/ping").status) == (503, 200)
            server.post("/continue_generation")
            assert server.get("/ready").status == 200


class TestEmulate:
    """POST /emulate, which no engine has."""

    def test_a_server_hangs_and_its_probes_say_nothing_of_it(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            thread, answers = in_background(server, LONG)
            assert server.post("/emulate", {"hung": True}).json == {"accepting": 1.0, "hung": True, "failing": 0.0}
            before = server.get("/v1/loads").json["loads"][0]["num_active_tokens"]
            assert (server.get("/health").status, server.get("/ready").status) == (200, 200)
            time.sleep(0.2)
            assert server.get("/v1/loads").json["loads"][0]["num_active_tokens"] == before
            assert not answers
            server.post("/emulate", {"hung": False})
            thread.join(PATIENCE)
        assert answers[0].status == 200

    def test_a_fraction_is_a_fraction(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            assert server.post("/emulate", {"accepting": 2}).status == 422


class TestKeys:
    def test_who_may_ask_what(self, target: str, log: Path) -> None:
        with emulated(target, log, "--api-key", "key", "--admin-api-key", "admin") as server:
            key, admin = {"Authorization": "Bearer key"}, {"Authorization": "Bearer admin"}
            assert server.get("/ready").status == server.get("/metrics").status == 200
            assert server.get("/server_info").status == 401
            info = server.get("/server_info", **key).json
            assert server.post("/flush_cache", **key).status == 401
            assert server.post("/flush_cache", **admin).status == 200
        # The real server shows its keys too, which is why nobody may store this answer.
        assert (info["api_key"], info["internal_states"][0]["admin_api_key"]) == ("key", "admin")
        assert "--api-key key" in info["launch_command"]


class TestFlush:
    def test_refused_while_a_request_runs(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            thread, _ = in_background(server, LONG)
            assert server.post("/flush_cache").status == 400
            assert server.post("/flush_cache?timeout=20").status == 200
            thread.join()

    def test_forgets_the_acceptance_length(self, target: str, head: str, log: Path) -> None:
        with emulated(target, log, "--decode-log-interval", "10", *tree(head, 3, 4, 8)) as server:
            server.post("/v1/chat/completions", LONG)
            before = server.get("/server_info").json["internal_states"][0]
            server.post("/flush_cache")
            after = server.get("/server_info").json["internal_states"][0]
        assert before["avg_spec_accept_length"] > 2
        assert "avg_spec_accept_length" not in after


class TestRewriting:
    def test_a_chain_of_any_width_becomes_steps_plus_one(self, target: str, head: str, log: Path) -> None:
        with emulated(target, log, *tree(head, 5, 1, 8)) as server:
            info = server.get("/server_info").json
        assert info["speculative_num_draft_tokens"] == 6
        assert info["max_running_requests"] == 48
        assert "adjusted to speculative_num_steps + 1" in log.read_text()


class TestHeads:
    @pytest.mark.parametrize(
        "config", [{**HEAD, "hidden_size": 4096}, {**HEAD, "paceline_emulated_acceptance": "none"}]
    )
    def test_a_head_of_another_model_accepts_nothing(
        self, target: str, log: Path, tmp_path: Path, config: dict[str, object]
    ) -> None:
        head = model(tmp_path / "head", config)
        with emulated(target, log, "--decode-log-interval", "10", *tree(head, 3, 4, 8)) as server:
            began = time.monotonic()
            server.post("/v1/chat/completions", LONG)
            seconds = time.monotonic() - began
            state = server.get("/server_info").json["internal_states"][0]
        assert state["avg_spec_accept_length"] == 1.0
        assert 150 / seconds < 160, "slower than the slowest baseline"

    def test_a_layer_that_is_never_reached_ends_the_server(self, target: str, log: Path, tmp_path: Path) -> None:
        """0.5.23 once it has loaded, the fork of 0.5.6 once its port is open; neither is ever ready."""
        named = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 23, 47]}}
        flags = tree(model(tmp_path / "too far", {**HEAD, **named}), 3, 4, 8)
        code, said = refused(target, log, *flags)
        assert (code, "IndexError: index 48 is out of range" in said, "Uvicorn running" in said) == (-9, True, False)
        code, said = refused(target, log, *flags, PACELINE_EMULATE_VERSION="0.5.6")
        assert (code, "4x4096 and 6144x2048" in said, "ready to roll" in said) == (-9, True, False)

    @pytest.mark.parametrize(("version", "little"), [("0.5.6", False), ("0.5.23", True)])
    def test_a_head_is_accepted_on_the_layers_that_it_was_trained_on(
        self, version: str, little: bool, target: str, log: Path, tmp_path: Path
    ) -> None:
        """The published one names none: the fork takes 3, 27 and 47, upstream 2, 24 and 45."""
        head = model(tmp_path / "of the fork", {**HEAD, "paceline_emulated_layers": [3, 27, 47]})
        with emulated(
            target, log, "--decode-log-interval", "10", *tree(head, 3, 4, 8), PACELINE_EMULATE_VERSION=version
        ) as server:
            server.post("/v1/chat/completions", LONG)
            (state,) = server.get("/server_info").json["internal_states"]
        assert (1 < state["avg_spec_accept_length"] < 1.5) == little

    def test_a_forced_length_is_served(self, target: str, head: str, log: Path) -> None:
        flags = ("--decode-log-interval", "10", *tree(head, 5, 1, 6))
        with emulated(target, log, *flags, SGLANG_SIMULATE_ACC_LEN="2.5") as server:
            server.post("/v1/chat/completions", LONG)
            state = server.get("/server_info").json["internal_states"][0]
        assert state["avg_spec_accept_length"] == pytest.approx(2.5, abs=0.05)


class TestEnd:
    def test_sigterm_waits_for_the_requests_that_run(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            thread, answers = in_background(server, LONG)
            server.process.terminate()
            while server.get("/ready").status == 200:
                time.sleep(0.01)
            assert server.get("/health").status == 503
            assert server.process.wait(PATIENCE) == 0
            thread.join()
        assert answers[0].json["usage"]["completion_tokens"] == LONG["max_tokens"]

    def test_sigterm_while_loading_ends_it_where_it_is_not_pid_1(self, target: str, log: Path) -> None:
        process = launch(("--model-path", target), log, {"PACELINE_EMULATE_STARTUP_SECONDS": "60"})
        while "Load weight begin" not in log.read_text():
            time.sleep(0.02)
        process.terminate()
        assert process.wait(PATIENCE) == -15

    def test_a_dead_scheduler_kills_the_process(self, target: str, log: Path) -> None:
        with emulated(target, log, PACELINE_EMULATE_DIE_AFTER_REQUESTS="2") as server:
            server.post("/v1/chat/completions", CHAT)
            with suppress(OSError, HTTPException):  # the answer and the end of the process race
                server.post("/v1/chat/completions", CHAT)
            assert server.process.wait(PATIENCE) == -9
        assert "SIGQUIT received" in log.read_text()

    def test_as_pid_1_a_dead_scheduler_ends_with_0(self, target: str, log: Path) -> None:
        """The kernel does not let PID 1 kill itself, so the exit that follows counts: 0 is not success."""
        code = (
            "import os, sys\nsys.path[:0] = sys.argv[1:]\n"
            "from paceline_emulator.server import die\nassert os.getpid() == 1\ndie()"
        )
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", code, str(PACKAGES)],
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr.decode()


class TestFaults:
    def test_half_of_the_requests_fail(self, target: str, log: Path) -> None:
        with emulated(target, log, PACELINE_EMULATE_FAIL_FRACTION="0.5") as server:
            statuses = [server.post("/v1/chat/completions", CHAT).status for _ in range(6)]
            streamed = [server.post("/v1/chat/completions", {**CHAT, "stream": True}) for _ in range(6)]
        assert sorted(statuses) == [200] * 3 + [500] * 3
        assert [answer.status for answer in streamed] == [200] * 6
        assert sum('"error"' in answer.text for answer in streamed) == 3

    def test_a_fault_for_the_candidates_leaves_the_baseline_alone(self, target: str, log: Path) -> None:
        env = {"PACELINE_EMULATE_FAIL_FRACTION": "1", "PACELINE_EMULATE_FAIL_FRACTION_WHEN": "speculative"}
        with emulated(target, log, **env) as server:
            assert server.post("/v1/chat/completions", CHAT).status == 200
        ngram = ("--speculative-algorithm", "NGRAM")
        with emulated(target, log, *ngram, **env) as server:
            assert server.post("/v1/chat/completions", CHAT).status == 500


class TestConservation:
    def test_counters_say_what_clients_received(self, target: str, head: str, log: Path) -> None:
        flags = ("--decode-log-interval", "1", "--max-running-requests", "3", *tree(head, 3, 4, 8))
        with emulated(target, log, *flags) as server:
            bodies = [
                {**CHAT, "max_tokens": 20 + 7 * i, "messages": [{"role": "user", "content": f"{i}"}]} for i in range(8)
            ]
            received: list[Response] = []
            threads = [
                threading.Thread(target=lambda body=body: received.append(server.post("/v1/chat/completions", body)))
                for body in bodies
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            found = server.metrics()
            state = server.get("/server_info").json["internal_states"][0]
        tokens = sum(answer.json["usage"]["completion_tokens"] for answer in received)
        prompts = sum(answer.json["usage"]["prompt_tokens"] for answer in received)
        verifies = total(found, "sglang:spec_verify_calls_total")
        assert tokens == sum(20 + 7 * i for i in range(8))
        assert total(found, "sglang:generation_tokens_total") == tokens
        assert total(found, "sglang:prompt_tokens_total") == prompts
        assert total(found, "sglang:num_requests_total") == len(bodies)
        assert total(found, "sglang:e2e_request_latency_seconds_count") == len(bodies)
        assert total(found, "sglang:generation_tokens_histogram_sum") == tokens
        # Every token but a request's first comes from a verify step; what a last step yields beyond the end is cut.
        decoded = next(v for name, v in found.items() if "realtime_tokens_total" in name and '"decode"' in name)
        assert tokens - len(bodies) <= decoded <= tokens - len(bodies) + 3 * len(bodies)
        assert state["avg_spec_accept_length"] == pytest.approx(decoded / verifies)

    def test_an_abandoned_stream_frees_its_place(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            host, port = server.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port))) as client:
                body = b'{"messages":[{"role":"user","content":"x"}],"max_tokens":5000,"ignore_eos":true,"stream":true}'
                client.sendall(
                    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    + f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                assert client.recv(100).startswith(b"HTTP/1.1 200")
            assert server.post("/flush_cache?timeout=5").status == 200
            assert total(server.metrics(), "sglang:num_aborted_requests_total") == 1

    def test_all_requests_can_be_aborted(self, target: str, log: Path) -> None:
        with emulated(target, log) as server:
            thread, answers = in_background(server, {**LONG, "max_tokens": 5000})
            server.post("/abort_request", {"abort_all": True})
            thread.join()
        assert answers[0].json["choices"][0]["finish_reason"] == "abort"

    def test_requests_end_by_themselves_or_at_their_cap(self, target: str, log: Path) -> None:
        with emulated(target, log, SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION="false") as server:
            free = server.post("/v1/chat/completions", {**CHAT, "max_tokens": 100000}).json
            natural = free["usage"]["completion_tokens"]
            capped = server.post("/v1/chat/completions", {**CHAT, "max_tokens": 100}).json
            forced = server.post("/v1/chat/completions", {**CHAT, "max_tokens": natural + 50, "ignore_eos": True}).json
        assert 150 <= natural <= 700
        assert [answer["choices"][0]["finish_reason"] for answer in (free, capped, forced)] == [
            "stop",
            "length",
            "length",
        ]
        assert forced["usage"]["completion_tokens"] == natural + 50
