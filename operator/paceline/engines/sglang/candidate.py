"""A candidate as SGLang reads it: its algorithm, its branching, and all its command-line arguments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Arm, Server
from paceline.engines.arguments import ParsedFlag
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration
from paceline.engines.sglang.versions import EAGLE_FAMILY

RUNS_AS = {"NEXTN": "EAGLE", "MTP": "EAGLE"}
"""Algorithms that are rendered as EAGLE: under their own names they would miss SGLang's special cases for EAGLE, which
it checks before it resolves the alias: MiMo-V2, Step3p5 and GigaChat3.5 with several MTP layers, DeepSeek-V4 at all
(0.5.23, arg_groups/model_overrides, deepseek_v4_hook.py:148)."""

NGRAM_BREADTH = 10
NGRAM_TOKENS = 12
"""Default in 0.5.6 and 0.5.23."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An arm that speculates with a known algorithm."""

    configuration: Configuration
    arm: Arm

    @property
    def algorithm(self) -> str:
        assert self.arm.draft
        return self.arm.draft.algorithm

    @property
    def runs_as(self) -> str:
        """SGLang's name of the algorithm."""
        return RUNS_AS.get(self.algorithm, self.algorithm)

    @property
    def in_eagle_family(self) -> bool:
        return self.algorithm in EAGLE_FAMILY

    @property
    def branching(self) -> int:
        """Continuations kept at each step; 1 is a chain."""
        if self.algorithm == "NGRAM":
            return (self.arm.ngram.breadth if self.arm.ngram else None) or NGRAM_BREADTH
        return self.arm.tree.top_k if self.arm.tree else 1

    @property
    def branching_field(self) -> str:
        return "ngram.breadth" if self.algorithm == "NGRAM" else "tree.topK"

    @property
    def branching_text(self) -> str:
        return f"{'breadth' if self.algorithm == 'NGRAM' else 'topK'} {self.branching}"

    @property
    def flags(self) -> Mapping[str, ParsedFlag]:
        """The flags of all arms and the candidate's own, by their first names."""
        return {parsed.name: parsed for parsed in (*self.configuration.shared, *self.configuration.own(self.arm))}

    def value(self, flag: str) -> str | None:
        """None if the flag is not given."""
        parsed = self.flags.get(flag)
        return parsed.value if parsed else None

    def number(self, flag: str) -> int:
        """0 if the flag is not given, or has another value."""
        text = self.value(flag) or ""
        return int(text) if text.isdecimal() else 0

    def refused(self, below: str, message: str) -> Refusal:
        return Refusal(arm=self.arm.name, path=below, message=message)


def candidates(configuration: Configuration) -> Iterator[Candidate]:
    """All candidates except custom algorithms, whose requirements no rule knows."""
    for arm in configuration.arms:
        if arm.draft and not arm.custom:
            yield Candidate(configuration=configuration, arm=arm)


OLDER, NEWER = "SGL_", "SGLANG_"
YES = ("true", "1", "yes", "y")
"""Values that SGLang's EnvBool takes for true (0.5.6, environ.py:101)."""


def variable(server: Server, name: str) -> Mapping[str, Any] | None:
    """The variable that SGLang reads as `name`, which begins with SGLANG_; None without one.

    A release accepts `SGL_X` for `SGLANG_X`, for any X, and prefers the older name: environ.py:366 of 0.5.6, :579 of
    0.5.10, :2298 of 0.5.23 (in 0.5.3 already; 0.4.5 reads each by its own name, and no rule looks for one there).
    """
    variables = {str(entry["name"]): entry for entry in server.engine.env}
    return variables.get(OLDER + name.removeprefix(NEWER)) or variables.get(name)
