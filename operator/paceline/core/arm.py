"""One server configuration under measurement."""

from dataclasses import dataclass

from paceline.core.tree import Adaptive, Draft, Ngram, Tree

BASELINE = "baseline"

# SGLang 0.5.23's own: the deepest step of its adaptive configuration and the root; its n-gram width.
ADAPTIVE_WIDTH = 8
NGRAM_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`baseline` (no speculation, `draft` is None) or a named candidate, with one of tree to adaptive."""

    name: str
    draft: Draft | None = None
    tree: Tree | None = None
    block_size: int | None = None
    """Tokens that are proposed at once (DFLASH, DSPARK)."""
    ngram: Ngram | None = None
    adaptive: Adaptive | None = None
    args: tuple[str, ...] = ()

    @property
    def verify_width(self) -> int:
        """Tokens verified a step: ties between candidates go to the smaller one."""
        if self.tree:
            return self.tree.num_draft_tokens
        if self.adaptive:
            return ADAPTIVE_WIDTH
        if self.ngram:
            return self.ngram.num_draft_tokens or NGRAM_WIDTH
        return self.block_size or 1
