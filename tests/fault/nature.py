"""What a cluster does by itself while an operator works: pods are placed, become ready, run and end."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tests.support.answers import HEAD_FACTS, Truth, answer, fetched
from tests.support.campaigns import LATENCY, THROUGHPUT
from tests.support.containers import containers
from tests.support.memory import Controllers, Exit

from paceline.core import INCUMBENT
from paceline.core.names import COMPONENT_LABEL, POOL_LABEL
from paceline.engines.pod_template import CONCLUDE
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.fetching import FETCH_VARIABLE, FetchRequest
from paceline.kube import Manifest
from paceline.kube.resources import POD

TRUTHS: Mapping[str, Truth] = {"latency": {**LATENCY, INCUMBENT: LATENCY["wide"]}, "throughput": THROUGHPUT}
STEP_SECONDS = 1.0
JOB_SECONDS = 60.0
"""How long a prefetch or a round takes."""
GPUS, NODES = 4, 4
"""A server or a round fills a node; both pools and both their runs have room."""


@dataclass(kw_only=True)
class Nature(Controllers):
    """A prefetch finds its commits, a round measures the published throughputs.

    `spoil` is asked about each round that is about to end; an Exit is how its client ends instead.
    """

    spoil: Callable[[Manifest], Exit | None] = lambda pod: None
    truths: Mapping[str, Truth] = field(default_factory=lambda: TRUTHS)
    """Pool → its arms' throughputs."""

    def __post_init__(self) -> None:
        self.finish = self._finish
        if not self.cluster.list(self.cluster.kinds["v1", "Node"]).items:
            for number in range(NODES):
                self.add_node(f"gpu-{number}", GPUS, {"nvidia.com/gpu.product": "NVIDIA-H200"})

    async def live(self) -> None:
        """Never returns. At rest until something changes or a pod's time may be over."""
        while True:
            if self.step():
                await asyncio.sleep(STEP_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(JOB_SECONDS / 4 if self._busy() else None):
                    await self.cluster.changed()

    def _busy(self) -> bool:
        pods = self.cluster.peek(POD)
        return any(pod["status"]["phase"] == "Running" and what(pod) != "server" for pod in pods)

    def _finish(self, pod: Manifest) -> Mapping[str, Exit] | None:
        seconds = (self.cluster.now() - self.started[pod["metadata"]["uid"]]).total_seconds()
        return None if seconds < JOB_SECONDS else ENDS[what(pod)](self, pod)

    def round_ends(self, pod: Manifest) -> Mapping[str, Exit]:
        if spoiled := self.spoil(pod):
            return {CONCLUDE: spoiled}
        asked = RoundPlan.from_json(variable(pod, ENVIRONMENT))
        ended = self.cluster.now().timestamp()
        truth = self.truths[pod["metadata"]["labels"][POOL_LABEL]]
        return {CONCLUDE: Exit(log=answer(asked, truth, ended - JOB_SECONDS, ended, {}))}

    def fetch_ends(self, pod: Manifest) -> Mapping[str, Exit]:
        return {"fetch": Exit(0, fetched(FetchRequest.from_json(variable(pod, FETCH_VARIABLE)), HEAD_FACTS))}

    def _collect_garbage(self) -> None:
        """Only if there is some: looking for it takes more time than all the rest."""
        everything = [stored.manifest["metadata"] for stored in self.cluster._objects.values()]
        uids = {metadata["uid"] for metadata in everything}
        owners = (owner["uid"] for metadata in everything for owner in metadata.get("ownerReferences", ()))
        if any(uid not in uids for uid in owners) or any(metadata.get("finalizers") for metadata in everything):
            super()._collect_garbage()

    def pull_ends(self, _: Manifest) -> Mapping[str, Exit]:
        return {"pull": Exit(0)}


ENDS = {"round": Nature.round_ends, "fetch": Nature.fetch_ends, "pull": Nature.pull_ends}


def what(pod: Manifest) -> str:
    """server, round, fetch or pull; "server" too of somebody else's Deployment."""
    return str(pod["metadata"]["labels"].get(COMPONENT_LABEL, "server"))


def variable(pod: Manifest, name: str) -> str:
    """Of the environment of any of the pod's containers."""
    return next(str(v["value"]) for c in containers(pod) for v in c.get("env", ()) if v["name"] == name)
