"""A mistake found by an engine's rules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A mistake in a server or in one of its arms, with the way out in its message.

    `path` is below the spec for arguments that all arms share (`engine.args[2]`), else below the arm named in `arm`
    (`args[0]`, `tree`, `draft.algorithm`); `engines.places` completes the paths.
    """

    rule: str = ""
    """The rule's id, for docs and tests."""
    arm: str | None = None
    path: str
    message: str
