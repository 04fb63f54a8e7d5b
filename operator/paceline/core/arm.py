"""One server configuration under measurement."""

from dataclasses import dataclass

from paceline.core.tree import Adaptive, Custom, Depth, Draft, Ngram, Tree

BASELINE = "baseline"

# SGLang 0.5.23's own: the deepest step of its adaptive configuration and the root; its n-gram width.
ADAPTIVE_WIDTH = 8
NGRAM_WIDTH = 12


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
    def verify_width(self) -> int:
        """Tokens verified a step: ties between candidates go to the smaller one."""
        if self.tree:
            return self.tree.num_draft_tokens
        if self.schedule:
            return 1 + self.deepest
        if self.adaptive or self.custom:
            return ADAPTIVE_WIDTH
        if self.ngram:
            return self.ngram.num_draft_tokens or NGRAM_WIDTH
        return self.block_size or 1

    @property
    def deepest(self) -> int:
        """Of a schedule: the most draft tokens in a step."""
        return max((depth.num_steps for depth in self.schedule), default=0)

    @property
    def engine_chooses_depth(self) -> bool:
        """It may rest at some loads. Of an algorithm that is not known here, nobody knows that it does not."""
        return bool(self.adaptive or self.schedule or self.custom)
