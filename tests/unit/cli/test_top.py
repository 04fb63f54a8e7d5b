"""`kubectl paceline top`: what two readings of each server show, beside the evidence, through a real transport."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.support import golden
from tests.unit.cli.states import both_promoted
from tests.unit.kube.test_transport import talking_to

from paceline.cli import report_source, top

GOLDEN = Path(__file__).parent / "golden" / "top.yaml"
SECONDS = 1
PAGES = """\
sglang:num_requests_total{{engine_type="unified"}} {requests}
sglang:generation_tokens_total{{}} {tokens}
sglang:time_to_first_token_seconds_sum{{}} {ttft}
sglang:time_to_first_token_seconds_count{{}} {requests}
sglang:inter_token_latency_seconds_sum{{}} {itl}
sglang:inter_token_latency_seconds_count{{}} {later}
sglang:num_running_reqs{{}} 2.0
sglang:num_queue_reqs{{}} 0.0
sglang:spec_accept_length{{}} 2.4
"""
"""A second of a server: 2 requests of 100 tokens each, the first after 50 ms, the others 10 ms apart."""


def counted(second: int) -> str:
    return PAGES.format(
        requests=10 + 2 * second,
        tokens=1000 + 200 * second,
        ttft=1 + 0.1 * second,
        later=990 + 198 * second,
        itl=9 + 1.98 * second,
    )


class Server:
    """An API server with the deployment of a story; servers answer through its proxy, but for one pool's."""

    def __init__(self, refuses: str = "", *, keeps_runs: bool = True) -> None:
        world = both_promoted()
        self.deployment = world.cluster.of("SpeculativeDeployment")[0]
        self.lists = {
            "benchmarkruns": world.cluster.of("BenchmarkRun") if keeps_runs else [],
            "benchmarkrounds": world.cluster.of("BenchmarkRound") if keeps_runs else [],
            "pods": world.cluster.of("Pod", component="server"),
        }
        self.refuses = refuses
        self.asked: dict[str, int] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        if "/proxy/metrics" in path:
            return self.page(path)
        plural = path.rpartition("/")[2]
        if plural in self.lists:
            listing = {"metadata": {"resourceVersion": "1"}, "items": self.lists[plural]}
            return web.json_response(listing)
        found = plural == self.deployment["metadata"]["name"]
        return web.json_response(self.deployment if found else {"code": 404}, status=200 if found else 404)

    def page(self, path: str) -> web.StreamResponse:
        pod = path.split("/pods/")[1].partition(":")[0]
        if self.refuses and self.refuses in pod:
            return web.json_response({"message": "pods is forbidden"}, status=403)
        self.asked[pod] = self.asked.get(pod, -1) + 1
        return web.Response(text=counted(self.asked[pod]))


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    top.add(parser.add_subparsers(dest="command"))
    return parser.parse_args(["top", "qwen3-coder-next", "--interval", f"{SECONDS}s", *words])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two readings are one second apart, however long the machine takes."""
    ticks: Iterator[float] = iter((100.0, 100.0 + SECONDS))
    monkeypatch.setattr(top, "monotonic", lambda: next(ticks))


@pytest.mark.usefixtures("clock")
async def test_what_serves_now_stands_beside_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking_to(Server().answer, tmp_path) as api:
        assert await top.top(api, "models", arguments()) == 0
    golden.check(GOLDEN, {"top": capsys.readouterr().out.rstrip()}, "Each server has two requests under way.")


@pytest.mark.usefixtures("clock")
async def test_json_has_numbers_as_decimals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with talking_to(Server().answer, tmp_path) as api:
        assert await top.top(api, "models", arguments("-o", "json", "--pool", "latency")) == 0
    (pool,) = json.loads(capsys.readouterr().out)["pools"]
    assert pool["now"] == {
        "requestsUnderWay": "2", "tokensPerSecond": "200", "acceptLength": "2.4", "ttftSeconds": "0.05",
        "itlSeconds": "0.01",
    }  # fmt: skip
    assert (pool["emulated"], pool["measured"][0]["workload"]) == (True, "code@1")
    assert float(pool["measured"][0]["tokensPerSecond"]) > 200


@pytest.mark.usefixtures("clock")
async def test_a_server_that_may_not_be_read_says_which_right_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking_to(Server(refuses="throughput").answer, tmp_path) as api:
        assert await top.top(api, "models", arguments()) == 0
    assert "`get` on pods/proxy" in capsys.readouterr().out


@pytest.mark.usefixtures("clock")
async def test_the_report_reads_the_same_servers_and_goes_on_without_those_that_it_may_not(tmp_path: Path) -> None:
    server = Server(refuses="throughput")
    server.lists["controllerrevisions"] = both_promoted().cluster.of("ControllerRevision")
    async with talking_to(server.answer, tmp_path) as api:
        found = await report_source.source_named(api, "models", "specdep/qwen3-coder-next", SECONDS)
    (served,) = found.deployments
    latency, throughput = (served.traffic[pool] for pool in ("latency", "throughput"))
    assert latency.now
    assert latency.now.tokens_per_second == 200
    assert throughput.now is None
    assert "pods/proxy" in throughput.errors[0]
    assert served.revisions
    assert {pool.status.serving.revision for pool in served.deployment.pools if pool.status.serving} <= served.revisions


@pytest.mark.usefixtures("clock")
async def test_of_a_run_that_was_deleted_it_shows_what_status_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking_to(Server(keeps_runs=False).answer, tmp_path) as api:
        assert await top.top(api, "models", arguments("-o", "json", "--pool", "latency")) == 0
    (pool,) = json.loads(capsys.readouterr().out)["pools"]
    assert pool["measured"][0] == {
        "workload": "code@1", "requestsUnderWay": "1", "tokensPerSecond": None, "acceptLength": "2.8",
        "ttftSeconds": "0.04", "itlSeconds": "0.04",
    }  # fmt: skip
