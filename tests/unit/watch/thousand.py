"""What it costs to watch 1,000 pools: `python -m tests.unit.watch.thousand`, part of `make bench`.

A process serves the page of a real SGLang server, 91 kB and 742 lines, for every pod; the operator's watcher reads
1,000 pools of one server each for a minute, at its own pace. Prints the share of one core that it took.
"""

import asyncio
import random
import sys
import time
from datetime import timedelta
from multiprocessing import Process as Child
from pathlib import Path

from tests.support import memory

from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.watch import Watcher
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, POOL_LABEL
from paceline.engines import ENGINES
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Expected, Watched

PAGE = Path(__file__).parents[2] / "contract" / "captures" / "eagle3" / "metrics.txt"
POOLS = 1000
SETTLE, MEASURE = 32.0, 60.0
MOST = 0.10
"""Of a core."""
WATCHED = Watched(
    revision="a1b2c3", arm="wide", engine="SGLang", version="0.5.23", verify_tokens=8, acceptance_drop=0.25,
    expected=(Expected(concurrency=8, accept_length=2.5),), window=timedelta(minutes=10),
)  # fmt: skip


async def serve(address: str, port: int) -> None:
    page = PAGE.read_bytes()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(page)}\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + page)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, address, port, backlog=1024)
    await server.serve_forever()


def cluster(address: str) -> WatchedCluster:
    known = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    for number in range(POOLS):
        name = f"served-{number}"
        labels = {**MANAGED_BY, DEPLOYMENT_LABEL: name, POOL_LABEL: "latency", COMPONENT_LABEL: "server"}
        metadata = {"name": name, "namespace": f"models-{number % 50}", "uid": name, "resourceVersion": str(number + 1)}
        known.saw(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata | {"labels": labels | {REVISION_LABEL: WATCHED.revision}},
                "spec": {},
                "status": {"podIP": address, "conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
        known.watch(ObjectKey("speculativedeployments", metadata["namespace"], name), {"latency": WATCHED})
    return known


async def watch(known: WatchedCluster) -> float:
    """Seconds of this process on a core, per second."""
    running = asyncio.create_task(Watcher(known).run())
    await asyncio.sleep(SETTLE)
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(MEASURE)
    share = (time.process_time() - used) / (time.monotonic() - began)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return share


def main() -> int:
    address = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
    child = Child(target=lambda: asyncio.run(serve(address, ENGINES["SGLang"].port)), daemon=True)
    child.start()
    known = cluster(address)
    share = asyncio.run(watch(known))
    child.kill()
    judged = sum(len(pools) for pools in known.judgements.values())
    print(f"{judged} of {POOLS} pools judged, each read every 30 s: {share:.1%} of a core, at most {MOST:.0%}")
    return 0 if share <= MOST and judged == POOLS else 1


if __name__ == "__main__":
    sys.exit(main())
