"""The row that describes an engine to the rest of the code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core import Arm, Server, Workload
from paceline.core.manifest import Scalar
from paceline.engines.capabilities import Capabilities
from paceline.engines.importing import Importing
from paceline.engines.known_problems import KnownProblem
from paceline.engines.model_rules import ModelRule, PairFacts
from paceline.engines.monitor import Monitor
from paceline.engines.probe import Probe
from paceline.engines.refusal import Refusal
from paceline.engines.starts import StartLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A limit that the user's arguments set for all arms: its flag as written, and its number."""

    path: str
    """Below the spec."""
    flag: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFlags:
    """The flags from which preflight estimates memory; "" if the engine has none."""

    static_share: str = ""
    """Share of the accelerator's memory for weights and caches."""
    context: str = ""
    tokens: str = ""
    """Tokens that the KV cache holds."""
    cache_type: str = ""
    """Element type in the KV cache."""
    quantization: str = ""
    """Method by which weights are quantised while they are loaded."""
    expert_parallel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """The engine's emulator, which needs no accelerator, for `paceline measure --emulated`: a module of a neighbouring
    package."""

    module: str
    words: tuple[str, ...] = ()
    """The emulator's first arguments."""
    profiles: str = "paceline_emulator.profile"
    """The module that names a target's profile."""
    releases: tuple[str, ...] = ()
    """Engine versions that it can emulate, besides its newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An engine as a row of functions, all of them pure."""

    capabilities: Capabilities
    program: tuple[str, ...]
    """The first words of every argv, which another command replaces if the engine has no image."""
    port: int
    newest: str
    """The newest release whose flags were read."""
    reads: Callable[[str], bool]
    """Engine version → whether its flags were read, or the flags of both neighbouring releases."""
    argv: Callable[[Server, Arm], tuple[str, ...]]
    """The whole command of an arm's server."""
    running_requests: Callable[[Server], int]
    """How many requests a server runs at once: the only part of its argv that depends on the measured load."""
    env: Callable[[Server], tuple[Mapping[str, Any], ...]]
    """core/v1 EnvVar objects of the server's container."""
    expected: Callable[[Server, Arm], Mapping[str, Scalar]]
    """Resolved arguments that the server of an arm must report, with their values."""
    verify_tokens: Callable[[Arm], int]
    """The most tokens that a verify step checks, the root included; 1 without speculation."""
    compared: tuple[str, ...]
    """Resolved arguments that every server must report. These, and all others except `moved`, are equal on all arms of
    a round."""
    moved: Callable[[tuple[Arm, ...]], tuple[str, ...]]
    """Resolved arguments that speculation changes. A name also covers the names below it; a trailing asterisk matches
    any ending."""
    refusals: Callable[[Server, tuple[Arm, ...]], tuple[Refusal, ...]]
    bounds: Callable[[Server], Mapping[str, Bound]]
    """Limits in `engine.args`: concurrent "requests", tokens of one request with its answer ("context"), "tokens" of
    all requests."""
    eagle3_targets: Callable[[str], frozenset[str] | None]
    """Engine version → the target architectures that support an EAGLE3 head; None if unknown."""
    ready_path: Callable[[str], str]
    """Engine version → the path that answers 200 as soon as requests are served."""
    health_path: str
    health_timeout_seconds: int
    probe: Callable[[str], Probe]
    """Engine version → how a round asks a server and reads its answers."""
    jit_cache: str
    """Directory of compiled kernels, kept on the cache volume so that the second start is faster."""
    importing: Importing
    """How `paceline import` reads a Deployment of the engine."""
    common: Mapping[str, str] = field(default_factory=dict)
    """Arguments that engines of all types resolve: a common name → its own. They are equal on arms of different engines
    unless a person wrote one."""
    resolved_as: Mapping[str, str] = field(default_factory=dict)
    """A flag's name → the resolved argument that shows it, where that has another name."""
    ignored: Callable[[Server], Iterable[tuple[str, str]]] = lambda _: ()
    """Environment variables in `engine` that the release does not read: paths below the spec, and messages."""
    parallel: Callable[[Server], Iterable[Refusal]] = lambda _: ()
    """Arguments of all arms that need more accelerators than the server has (`engines.parallel`)."""
    attention_groups: Callable[[Server], int] = lambda _: 1
    """Number of groups into which tensor parallelism is divided; each group has all attention heads."""
    interrupted: str = ""
    """The argument that identifies the server's process, as a grep pattern that does not match itself. It gets SIGINT
    before SIGTERM, to close kept-alive connections; "" if SIGTERM already closes them."""
    seed_argument: str = ""
    """Resolved argument with the server's random seed; "" if it reports none."""
    starts: StartLines | None = None
    """What its log says of a start; None if nothing is known."""
    ready_answer_seconds: Callable[[str], int] = lambda _: 2
    """Engine version → how long `ready_path` may take to answer."""
    without_hidden_states: Callable[[Server], frozenset[str]] = lambda _: frozenset()
    """Target architectures known not to provide hidden states, which some heads read."""
    files: Callable[[Arm], Mapping[str, str]] = lambda _: {}
    """Files that an arm's argv names: path in the server's container, below `core.names.FILES`, → text. The text
    determines the name, so two texts never share a path."""
    loses: Callable[[Arm], str] = lambda _: ""
    """What requests lose on servers of this arm, with its source; "" if nothing is known."""
    refuses: Callable[[Arm, Workload], Iterable[Refusal]] = lambda *_: ()
    """Features that a workload's requests ask for and an arm's servers lack; `path` is below the dataset."""
    tools_need: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda _: ()
    """Body of a request → flags without which a server refuses its tools."""
    eagle3_since: Callable[[str], str | None] = lambda _: None
    """Target architecture → the first known release that gives its hidden states to an EAGLE3 head."""
    whole_models: Callable[[str], frozenset[str]] = lambda _: frozenset()
    """Engine version → classes known to be whole models, never draft heads."""
    known_problems: tuple[KnownProblem, ...] = ()
    variables: tuple[str, ...] = ()
    """Prefixes of its own environment variables, before an underscore."""
    emulator: Emulator | None = None
    model_rules: tuple[ModelRule[PairFacts], ...] = ()
    """Preflight's rules of this engine; each replaces the shared rule with its id."""
    memory_flags: MemoryFlags = MemoryFlags()
    monitor: Callable[[str], Monitor] = lambda _: Monitor(cannot="no metrics of this engine are known")
    """Engine version → how its servers are monitored while they serve."""

    def draft_tokens(self, arm: Arm) -> int | None:
        """Draft tokens of every verify step, without its root; None without speculation, and if the engine chooses the
        number."""
        return None if arm.draft is None or arm.engine_chooses_depth else self.verify_tokens(arm) - 1
