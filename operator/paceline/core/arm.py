"""One server configuration under measurement."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from paceline.core.kept import by_identity
from paceline.core.server import Engine, Server
from paceline.core.tree import Adaptive, Custom, Depth, Draft, Ngram, Tree

BASELINE = "baseline"
INCUMBENT = "incumbent"
"""The arm that is what a pool serves, in a run about a changed spec: whatever would replace it must not be slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The `baseline`, which has nothing but its name, or a candidate: with a draft and one shape (tree … custom), with
    an engine of its own, or with both."""

    name: str
    draft: Draft | None = None
    tree: Tree | None = None
    block_size: int | None = None
    """Tokens proposed at once (DFLASH, DSPARK)."""
    ngram: Ngram | None = None
    adaptive: Adaptive | None = None
    depth_by_batch_size: tuple[Depth, ...] = ()
    """Chain depths by batch size, ascending from 1; empty without a schedule."""
    custom: Custom | None = None
    args: tuple[str, ...] = ()
    engine: Engine | None = field(default=None, hash=False)
    """The whole engine of its servers; None: the one that the arms share."""

    @property
    def deepest(self) -> int:
        """The most draft tokens in a step of the schedule; 0 without one."""
        return max((depth.num_steps for depth in self.depth_by_batch_size), default=0)

    @property
    def moving_depth(self) -> str:
        """The field with which the engine changes the depth while serving; "" if the depth is fixed."""
        return "adaptive" if self.adaptive else "depthByBatchSize" if self.depth_by_batch_size else ""

    @property
    def engine_chooses_depth(self) -> bool:
        """Whether the engine may stop drafting at some loads; assumed for a custom algorithm."""
        return bool(self.adaptive or self.depth_by_batch_size or self.custom)


@by_identity(64)
def server_of(server: Server, arm: Arm) -> Server:
    """The arm's server: the shared one, with the arm's own engine if it has one."""
    if arm.engine is None:
        return server
    if not (size := arm.engine.tensor_parallel_size):
        return replace(server, engine=arm.engine)
    accelerator = replace(server.accelerator, tensor_parallel_size=size)
    return replace(server, engine=replace(arm.engine, tensor_parallel_size=0), accelerator=accelerator)


def by_server(server: Server, arms: Iterable[Arm]) -> tuple[tuple[Server, tuple[Arm, ...]], ...]:
    """The arms that share the server, then each arm with an engine of its own."""
    arms = tuple(arms)
    own = ((server_of(server, arm), (arm,)) for arm in arms if arm.engine)
    return ((server, tuple(arm for arm in arms if arm.engine is None)), *own)
