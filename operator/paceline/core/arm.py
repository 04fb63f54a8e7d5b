"""One server configuration under measurement."""

from dataclasses import dataclass

from paceline.core.tree import Adaptive, Custom, Depth, Draft, Ngram, Tree

BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`baseline` (no speculation, `draft` is None) or a named candidate, with one of tree to custom."""

    name: str
    draft: Draft | None = None
    tree: Tree | None = None
    block_size: int | None = None
    """Tokens that are proposed at once (DFLASH, DSPARK)."""
    ngram: Ngram | None = None
    adaptive: Adaptive | None = None
    schedule: tuple[Depth, ...] = ()
    """Chains by batch size, rising from 1; empty: none."""
    custom: Custom | None = None
    args: tuple[str, ...] = ()

    @property
    def deepest(self) -> int:
        """Of a schedule: the most draft tokens in a step."""
        return max((depth.num_steps for depth in self.schedule), default=0)

    @property
    def engine_chooses_depth(self) -> bool:
        """It may rest at some loads. Of an algorithm that is not known here, nobody knows that it does not."""
        return bool(self.adaptive or self.schedule or self.custom)
