"""Every query of every dashboard, asked of a real Prometheus that reads a real operator and emulated servers of both
engines: each has an answer, in a story in which there is something to answer."""

import time
from collections.abc import Sequence
from pathlib import Path

from tests.api.chart import of_kind, rendered
from tests.contract.test_prometheus import program
from tests.dashboards.asked import Asked, Offered, Prometheus, boards, queries, variables, with_values
from tests.dashboards.feed import NAMESPACE, deployment, discovery, feed, of_process, prometheus
from tests.dashboards.quiet import STORIES
from tests.support.apiserver import Running

GUARD = {"window": "10s", "acceptanceDrop": "20%"}
NAMES = "coder-sglang", "coder-vllm"


async def test_every_query_has_an_answer(apiserver: Running, tmp_path: Path) -> None:
    (servers,) = of_kind(rendered(podMonitor__servers=True), "PodMonitor")
    async with feed(apiserver, tmp_path, frozenset({"wide"})) as fed:
        scrapes = discovery(fed.kubelet.found, servers), of_process({"paceline-0": fed.metrics_port})
        with prometheus(tmp_path, program(), *scrapes) as url:
            asked, began = Prometheus(url), time.time()
            for engine in ("SGLang", "vLLM"):
                fed.apply(deployment(engine, GUARD))
            await fed.until("both serve wide", lambda: [fed.serving(name) for name in NAMES] == ["wide", "wide"])
            await fed.until("both have an emulator", lambda: len(fed.kubelet.running) == 2)
            await fed.under_load("the guard has both in its window", lambda: watched(asked) == 2)
            found = {name: answered(asked, name, began) for name in NAMES}
            offered = {one.where: asked.values(with_values(one.metric, {}), one.label) for one in all_variables()}
    silent = {name: {each.where for each, series in of.items() if not series} for name, of in found.items()}
    assert sum(map(len, found.values())) >= 150, "the dashboards have that many queries"
    assert {name: of - STORIES.keys() for name, of in silent.items()} == {name: set() for name in NAMES}
    assert [where for where, values in offered.items() if not values] == []
    assert offered["paceline-deployment: $deployment"] == [*NAMES]


def watched(asked: Prometheus) -> float:
    """Pools whose servers' counters fill a window, for some seconds already: a course is asked for second by second."""
    return sum(value for _, value in asked.now("count(paceline_pool_accept_length)", time.time() - 3))


def all_variables() -> list[Offered]:
    return [each for uid, board in boards().items() for each in variables(uid, board)]


def answered(asked: Prometheus, name: str, began: float) -> dict[Asked, Sequence[object]]:
    """Query → its series, of one deployment where it is about one."""
    values = {"deployment": name, "namespace": f"{NAMESPACE}|paceline-system"}
    now = time.time()

    def of(one: Asked) -> Sequence[object]:
        expr = with_values(one.expr, values)
        return asked.now(expr, now) if one.now else asked.course(expr, began, now, 1)

    return {one: of(one) for uid, board in boards().items() for one in queries(uid, board)}
