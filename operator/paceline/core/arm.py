"""One server configuration under measurement."""

from dataclasses import dataclass

from paceline.core.tree import Draft, Tree

BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`baseline` (no speculation, `draft` is None) or a named candidate."""

    name: str
    draft: Draft | None = None
    tree: Tree | None = None
    args: tuple[str, ...] = ()

    @property
    def verify_width(self) -> int:
        """Tokens verified a step: ties between candidates go to the smaller one."""
        return self.tree.num_draft_tokens if self.tree else 1
