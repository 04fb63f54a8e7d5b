"""One server configuration under measurement."""

from dataclasses import dataclass

from paceline.core.tree import Adaptive, Custom, Depth, Draft, Ngram, Tree

BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The `baseline` (no speculation; `draft` is None) or a named candidate with one shape (tree … custom)."""

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
