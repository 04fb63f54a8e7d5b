"""What Paceline must know of an engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Arm, Server

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An argument that cannot stand, and the way out."""

    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An engine as a row of functions; all are pure.

    `compared` names the resolved arguments that must be equal on all arms of a round: what speculation might
    change behind our back. `expected` says what the resolved arguments of one arm must be.
    """

    port: int
    argv: Callable[[Server, Arm], tuple[str, ...]]
    env: Callable[[Server], tuple[Mapping[str, Any], ...]]
    expected: Callable[[Server, Arm], Mapping[str, Scalar]]
    compared: tuple[str, ...]
    refusals: Callable[[Server, tuple[Arm, ...]], tuple[Refusal, ...]]
    ready_path: str
    health_path: str
    health_timeout_seconds: int
    jit_cache: str
    """The directory that holds compiled kernels; kept on the cache volume so that the second start is faster."""
