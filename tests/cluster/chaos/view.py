"""What happens in the cluster, seen by watches of our own: which Jobs there were, and when a round was recorded."""

import asyncio
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.kubernetes import OPERATOR, STATE, Manifest

from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import Reflector, Throttle, connect
from paceline.kube.resources import JOB, POD, Resource

LOOK_SECONDS = 0.5
WATCHED = (SPECULATIVE_DEPLOYMENT, BENCHMARK_RUN, BENCHMARK_ROUND, JOB, POD)
Name = tuple[str, str]
"""Namespace and name."""
RoundOf = tuple[str, str, int, int]
"""Namespace, run, round and try."""


@dataclass
class View:
    """All of it since the beginning; the stores are as a watch has them, so a moment late."""

    jobs: dict[Name, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    """Uids that a Job of this name has had, and when each was first seen."""
    recorded: dict[RoundOf, tuple[str, float]] = field(default_factory=dict)
    """The Job of a round that was recorded, and when that was first seen."""
    twice: list[tuple[str, str]] = field(default_factory=list)
    """Namespaces, and what was recorded there anew, or lost again."""
    said: list[tuple[float, str]] = field(default_factory=list)
    """Lines of the operator's log, and when they were read."""
    _stores: dict[str, Reflector] = field(default_factory=dict)
    _read: dict[Path, int] = field(default_factory=dict)

    def all(self, resource: Resource, namespace: str) -> list[Manifest]:
        return self._stores[resource.plural].store.select(namespace)

    def lines(self, since: float) -> list[str]:
        return [line for at, line in self.said if at >= since]

    async def run(self, kubeconfig: Path, began: threading.Event) -> None:
        heard = {JOB.plural: self._job, BENCHMARK_ROUND.plural: self._round}
        async with await connect(str(kubeconfig), kinds=RECONCILED_KINDS, throttle=Throttle(1000, 1000)) as api:
            for resource in WATCHED:
                on_change = heard.get(resource.plural, _ignore)
                self._stores[resource.plural] = Reflector(api, resource, on_change=on_change)
            async with asyncio.TaskGroup() as group:
                for reflector in self._stores.values():
                    group.create_task(reflector.run())
                for reflector in self._stores.values():
                    await reflector.synced.wait()
                self._logs(keep=False)
                began.set()
                while True:
                    await asyncio.sleep(LOOK_SECONDS)
                    self._logs(keep=True)

    def _job(self, event: str, found: Manifest, _: Manifest | None) -> None:
        of = found["metadata"]
        known = self.jobs[of["namespace"], of["name"]]
        if event != "DELETED" and of["uid"] not in [uid for uid, _ in known]:
            known.append((of["uid"], time.monotonic()))

    def _round(self, event: str, found: Manifest, _: Manifest | None) -> None:
        """Its name says run, round and try, so none is there twice; one that is gone while its run is there is told."""
        of, entry = found["metadata"], found["spec"]
        (run,) = (owner["uid"] for owner in of["ownerReferences"])
        if event == "DELETED" and any(
            one["metadata"]["uid"] == run for one in self.all(BENCHMARK_RUN, of["namespace"])
        ):
            self.twice.append((of["namespace"], f"{of['name']}: a recorded round is gone"))
        name = of["namespace"], run, entry["round"], entry["try"]
        self.recorded.setdefault(name, (entry["job"], time.monotonic()))

    def _logs(self, *, keep: bool) -> None:
        """What was written since, into the files of all containers that the operator has had."""
        for path in STATE.glob(f"node-*/pod-logs/{OPERATOR}_paceline-*/operator/*.log"):
            try:
                with path.open("rb") as log:
                    log.seek(self._read.get(path, 0))
                    text = log.read()
            except OSError:  # its pod was deleted
                continue
            whole = text.rpartition(b"\n")[0] + b"\n" if b"\n" in text else b""
            self._read[path] = self._read.get(path, 0) + len(whole)
            if keep:
                lines = whole.decode(errors="replace").splitlines()
                self.said += [(time.monotonic(), re.sub(r"^\S+ (stdout|stderr) [FP] ", "", line)) for line in lines]


def _ignore(_event: str, _found: Manifest, _old: Manifest | None) -> None:
    pass


@contextmanager
def watching() -> Iterator[View]:
    """A thread of its own keeps it up to date."""
    view, began, loops = View(), threading.Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]]()

    async def keep() -> None:
        task = asyncio.current_task()
        assert task is not None
        loops.append((asyncio.get_running_loop(), task))
        await view.run(STATE / "kubeconfig", began)

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(keep())

    thread = threading.Thread(target=run, name="view", daemon=True)
    thread.start()
    assert began.wait(30), "the cluster does not answer"
    try:
        yield view
    finally:
        for loop, task in loops:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
