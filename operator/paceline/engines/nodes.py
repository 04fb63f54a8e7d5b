"""Servers on several nodes: the arguments with which their processes find each other, and the refusals.

The LeaderWorkerSet controller sets variables with a node's rank and the address of rank 0; the kubelet fills them into
the command.
"""

from collections.abc import Iterator, Sequence

from paceline.core import DeploymentSpec, RunSpec, Server, UntilDecided
from paceline.engines.refusal import Refusal

_PORT = 20000
"""Port of rank 0. sglang-jax also uses 20005 and 20006."""
PIPELINES = ("--pp-size", "--pipeline-parallel-size")


def ranks(server: Server) -> tuple[str, ...]:
    """Arguments of SGLang and sglang-jax; empty for a server on one node."""
    if server.accelerator.nodes == 1:
        return ()
    return (
        "--nnodes", str(server.accelerator.nodes),
        "--node-rank", "$(LWS_WORKER_INDEX)",
        "--dist-init-addr", f"$(LWS_LEADER_ADDRESS):{_PORT}",
    )  # fmt: skip


def refusals(server: Server, able: Sequence[str]) -> Iterator[Refusal]:
    """`able`: the engines that support several nodes."""
    nodes, tp = server.accelerator.nodes, server.accelerator.tensor_parallel_size
    if nodes == 1:
        return
    if server.engine.type not in able:
        message = f"{nodes} nodes are served with {' and '.join(able)} only, not {server.engine.type}: set 1"
        yield Refusal(rule="nodes-engine", path="accelerator.nodes", message=message)
    if tp % nodes and not any(argument.startswith(PIPELINES) for argument in server.engine.args):
        message = f"{tp} cannot be divided among {nodes} nodes: take a multiple of {nodes}"
        yield Refusal(rule="nodes-parallel", path="accelerator.tensorParallelSize", message=message)


def unmeasurable(server: Server) -> str:
    """Why runs cannot compare this server's arms; "" if they can."""
    nodes = server.accelerator.nodes
    return f"accelerator.nodes is {nodes}, but a run measures on one node" if nodes > 1 else ""


def never_measured(spec: RunSpec) -> Iterator[Refusal]:
    if why := unmeasurable(spec.server):
        yield Refusal(rule="nodes-run", path="spec.accelerator.nodes", message=f"{why}: set 1")


def never_served(spec: DeploymentSpec) -> Iterator[Refusal]:
    """Pools that would wait forever for a verdict."""
    why = unmeasurable(spec.server)
    if why and spec.promotion.until_decided is UntilDecided.NOTHING:
        message = f"Nothing would wait forever, because {why}: write Baseline"
        yield Refusal(rule="nodes-nothing", path="spec.promotion.untilDecided", message=message)
