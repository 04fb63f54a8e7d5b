"""What Paceline must know of an engine."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Arm, Server
from paceline.engines.capabilities import Capabilities
from paceline.engines.model_rules import ModelRule, PairFacts
from paceline.engines.probe import Probe

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What of a server or of one of its arms cannot stand, and the way out.

    `path` is below the spec for what all arms share (`engine.args[2]`), else below the arm named in `arm`
    (`args[0]`, `tree`, `draft.algorithm`); `engines.places` makes whole paths of them.
    """

    rule: str = ""
    """Id of the rule, for docs and tests."""
    arm: str | None = None
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A limit that the user's arguments set for all arms: where, as written, and for how much."""

    path: str
    """Below the spec."""
    flag: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFlags:
    """The flags by which preflight estimates memory; "": the engine has none for it."""

    static_share: str = ""
    """Share of the accelerator's memory for weights and caches."""
    context: str = ""
    tokens: str = ""
    """Tokens that the KV cache holds."""
    cache_type: str = ""
    """Element type of the KV cache."""
    quantization: str = ""
    """Method by which weights are quantised while they are loaded."""
    expert_parallel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An engine as a row of functions; all are pure.

    `compared` names the resolved arguments that every server must say. They are equal on all arms of a round, and so
    are all others but those that `moved` names, which speculation changes by itself (a name covers what is below it,
    one that ends in an asterisk all that begins so). `expected` says what the resolved arguments of one arm must be.
    """

    capabilities: Capabilities
    port: int
    argv: Callable[[Server, Arm], tuple[str, ...]]
    env: Callable[[Server], tuple[Mapping[str, Any], ...]]
    expected: Callable[[Server, Arm], Mapping[str, Scalar]]
    draft_tokens: Callable[[Arm], int]
    """The most tokens that a verify step checks, the root included; 1 without speculation."""
    compared: tuple[str, ...]
    moved: Callable[[tuple[Arm, ...]], tuple[str, ...]]
    refusals: Callable[[Server, tuple[Arm, ...]], tuple[Refusal, ...]]
    bounds: Callable[[Server], Mapping[str, Bound]]
    """What `engine.args` bounds: "requests" at a time, tokens of one with its answer ("context"), "tokens" of all."""
    eagle3_targets: Callable[[str], frozenset[str] | None]
    """By engine version, the target architectures that can carry an EAGLE3 head; None where that is not known."""
    ready_path: Callable[[str], str]
    """By engine version: answers 200 as soon as requests are served."""
    health_path: str
    health_timeout_seconds: int
    probe: Callable[[str], Probe]
    """By engine version: how a round asks a server and what it reads of it."""
    jit_cache: str
    """The directory that holds compiled kernels; kept on the cache volume so that the second start is faster."""
    ready_timeout_seconds: Callable[[str], int] = lambda _: 2
    """By engine version: how long `ready_path` may take to answer."""
    hand_out_nothing: Callable[[Server], frozenset[str]] = lambda _: frozenset()
    """Target architectures that are known to have no hidden states for a head that reads them."""
    loses: Callable[[Arm], str] = lambda _: ""
    """What requests no longer get from servers of this arm, with its source; "" if nothing that is known."""

    eagle3_since: Callable[[str], str | None] = lambda _: None
    """By target architecture, the first known release that hands hidden states to an EAGLE3 head."""
    whole_models: Callable[[str], frozenset[str]] = lambda _: frozenset()
    """By engine version, classes that are known to be whole models, never a draft head."""
    model_rules: tuple[ModelRule[PairFacts], ...] = ()
    """Preflight's rules of this engine; one replaces the shared rule of the same id."""
    memory_flags: MemoryFlags = MemoryFlags()

    def drafts(self, arm: Arm) -> int | None:
        """Draft tokens of every verify step, without its root; None without speculation, and where the engine chooses
        how many."""
        return None if arm.draft is None or arm.engine_chooses_depth else self.draft_tokens(arm) - 1

    def fewest_drafts_first(self, arms: Iterable[Arm]) -> tuple[Arm, ...]:
        """The baseline, then the candidates: the gate gives a tie to the earlier arm."""
        return tuple(sorted(arms, key=lambda arm: (arm.draft is not None, self.draft_tokens(arm), arm.name)))
