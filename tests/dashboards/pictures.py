"""`make dashboard-pictures`: docs/pictures/dashboard-*.png, drawn by `draw` of a few minutes of real series.

Two deployments serve their baselines under load; their runs begin, rounds of a few seconds each; both promote `wide`,
and are watched: the SGLang servers accept what the guard asks for, those of vLLM less.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.api.chart import of_kind, rendered
from tests.contract.test_prometheus import program
from tests.dashboards.asked import Prometheus, boards
from tests.dashboards.draw import Scene, picture
from tests.dashboards.feed import NAMESPACE, Feed, deployment, discovery, feed, of_process, prometheus
from tests.support import apiserver

ROOT = Path(__file__).parents[2]
GUARD = {"window": "30s", "acceptanceDrop": "20%"}
BEFORE, AFTER, ROUND = 75.0, 120.0, 14.0
MOST_BYTES = 200_000
NAMES = ("coder-sglang", "coder-vllm")
CHOSEN = {
    "paceline-fleet": {},
    "paceline-deployment": {"namespace": NAMESPACE, "deployment": NAMES[0], "pool": "latency"},
    "paceline-runs": {"namespace": NAMESPACE},
    "paceline-operator": {"namespace": "paceline-system"},
}


async def main(directory: Path, out: Path) -> None:
    server = apiserver.start(directory / "apiserver")
    try:
        server.install(ROOT / "crds")
        (servers,) = of_kind(rendered(podMonitor__servers=True), "PodMonitor")
        async with feed(server, directory, frozenset({"baseline", "wide"}), round_takes=ROUND, round_says=ROUND) as fed:
            scrapes = discovery(fed.kubelet.found, servers), of_process({"paceline-0": fed.metrics_port})
            with prometheus(directory, program(), *scrapes) as url:
                began = await tell(fed)
                draw(Prometheus(url), began, time.time(), out)
    finally:
        server.stop()


async def tell(fed: Feed) -> float:
    """The story; when it began."""
    for engine in ("SGLang", "vLLM"):
        manifest = deployment(engine, GUARD)
        fed.apply(manifest | {"spec": manifest["spec"] | {"suspend": True}})
    await fed.until("both have baselines", lambda: len(fed.kubelet.running) == 2)
    began = time.time()
    await fed.under_load("baselines serve", lambda: time.time() - began > BEFORE)
    for engine in ("SGLang", "vLLM"):
        fed.apply(deployment(engine, GUARD))
    await fed.under_load(
        "both serve wide", lambda: [fed.serving(name) for name in NAMES] == ["wide", "wide"], seconds=240
    )
    promoted = time.time()
    await fed.under_load("wide is watched", lambda: time.time() - promoted > AFTER, seconds=240)
    return began


def draw(asked: Prometheus, began: float, ended: float, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for uid, board in boards().items():
        made = picture(board, Scene(asked, CHOSEN[uid], began, ended, "15s"))
        (out / f"dashboard-{uid.removeprefix('paceline-')}.png").write_bytes(made)
        print(f"{uid}: {len(made) / 1000:.0f} kB", flush=True)
        assert len(made) <= MOST_BYTES


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="paceline-pictures-", dir="/var/tmp") as place:
        asyncio.run(main(Path(place), Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"))
