"""Whatever a server answers costs its own arm: not the round, not the client's memory, and no key."""

import dataclasses
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.support.messages import Says
from tests.support.rounds import arm_command
from tests.unit.round import hostile_server
from tests.unit.round.pod import CODE_1, Start
from tests.unit.round.test_round import fake

from paceline.engines.keys import API_KEY
from paceline.evidence import ArmCommand, decode, encode
from paceline.pods.round import server
from paceline.pods.round.steps import ServerFailed

KEY = "sk-of-the-server"
ROOT = Path(__file__).parents[3]
HOSTILE = (sys.executable, "-m", hostile_server.__name__)
FINDS_IT = {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
Stand = Callable[..., str]


@pytest.fixture
def stand(port: int) -> Iterator[Stand]:
    """Start a hostile server; its URL."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(way: str, page: str = "/page", *more: str) -> str:
        argv = (*HOSTILE, way, "--page", page, "--port", str(port), *more)
        processes.append(subprocess.Popen(argv, cwd=ROOT))
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 30
        while not server.is_ready(url, "/ready", 1.0):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return url

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "way",
    ["garbage", "nothing", "truncated", "truncated_chunk", "a_long_header", "many_headers", "no_text", "a_flood"],
)
def test_an_answer_that_is_none_is_the_servers_failure(stand: Stand, way: str, says: Says) -> None:
    url = stand(way)
    tracemalloc.start()
    with pytest.raises(ServerFailed, match=r"^GET /page: ") as failed:
        server.get(url, "/page", KEY)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    says(failed.value)
    assert most < 3 * server.LARGEST_BODY
    if way not in ("no_text", "a_flood"):
        assert not server.is_ready(url, "/page", 2.0)
    if way != "no_text":  # what a flush answers nobody reads
        with pytest.raises(ServerFailed, match="POST /page"):
            server.flush(url, "/page", KEY)


def test_an_answer_that_never_ends_has_a_deadline(stand: Stand) -> None:
    """Every byte comes well within a timeout of a socket."""
    url, before = stand("a_drip"), time.monotonic()
    with pytest.raises(TimeoutError):
        server.exchange(url, "GET", "/page", seconds=1.0)
    assert not server.is_ready(url, "/page", 1.0)
    assert time.monotonic() - before < 20


def test_a_redirect_takes_no_key_elsewhere(stand: Stand) -> None:
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(str(self.headers))
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        url = stand("a_redirect", "/page", "--elsewhere", f"http://127.0.0.1:{elsewhere.server_port}/")
        with pytest.raises(ServerFailed, match="GET /page: HTTP 302"):
            server.get(url, "/page", KEY)
        assert not server.is_ready(url, "/page", 2.0)
        elsewhere.shutdown()
    assert asked == []


def hostile(port: int, name: str, way: str, page: str, *more: str) -> ArmCommand:
    argv = (*HOSTILE, way, "--page", page, "--port", str(port), *more)
    return arm_command(name, *argv, candidate=name != "baseline")


@pytest.mark.parametrize(
    ("way", "page"),
    [("truncated", "/metrics"), ("deep", "/server_info"), ("odd", "/v1/models"), ("odd", "/server_info")],
)
def test_a_bad_answer_costs_its_arm_and_not_the_round(start: Start, port: int, way: str, page: str, says: Says) -> None:
    arms = (hostile(port, "baseline", way, page), fake(port, "wide", "--length", "3", "--steps", "3"))
    outcome = start(arms, CODE_1, **FINDS_IT).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.message
    bad, good = outcome.result.replicates
    says(bad.error)
    assert (bool(bad.error), good.error) == (True, "")
    assert [point.completed for point in good.points] == [CODE_1.dataset.requests]


def test_what_a_server_makes_us_say_has_no_key_and_nothing_a_terminal_obeys(
    start: Start, port: int, says: Says
) -> None:
    key = ("--api-key", f"$({API_KEY})")
    arm = hostile(port, "baseline", "its_key", "/v1/models", *key)
    outcome = start((arm,), CODE_1, **{API_KEY: KEY}, **FINDS_IT).finish()
    (bad,) = outcome.result.replicates
    assert "***" in bad.error
    says(bad.error)
    assert KEY not in outcome.log
    assert outcome.log.replace("\n", "").isprintable()


def test_a_message_of_anybodys_is_fit_to_show(start: Start, port: int) -> None:
    """The operator reads what the pod said, and the pod may not be ours."""
    outcome = start((fake(port, "baseline"),), CODE_1).finish()
    (one,) = outcome.result.replicates
    theirs = dataclasses.replace(
        outcome.result,
        replicates=(dataclasses.replace(one, error=f"{hostile_server.ESCAPES}gone\n"),),
        engine_version=f"0.5.23{hostile_server.ESCAPES}",
    )
    assert decode(encode(theirs)).replicates[0].error == "]0;owned[2Jgone "
    assert decode(encode(theirs)).engine_version == "0.5.23]0;owned[2J"
