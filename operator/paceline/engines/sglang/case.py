"""A pool's arms on their server as SGLang would read their arguments: what the rules look at."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Arm, Server
from paceline.engines.adapter import Refusal
from paceline.engines.sglang.flags import Flag, Given, flags, given
from paceline.engines.sglang.versions import EAGLE_FAMILY, Speaks, spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A flag and where it stands: in the arguments of all arms, or of one."""

    arm: str | None
    path: str
    given: Given
    flag: Flag | None
    """None: this version has no flag of that name."""

    @property
    def name(self) -> str:
        """The flag's first name; as written where it is not known."""
        return self.flag.name if self.flag else self.given.name

    @property
    def value(self) -> str:
        """The first; "" of a switch."""
        return self.given.values[0] if self.given.values else ""

    def refused(self, message: str) -> Refusal:
        return Refusal(arm=self.arm, path=self.path, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Arms that share a server."""

    server: Server
    arms: tuple[Arm, ...]

    @property
    def version(self) -> str:
        return self.server.engine.version

    @property
    def engine(self) -> str:
        """For messages."""
        return f"{self.server.engine.name} {self.version}"

    @property
    def speaks(self) -> Speaks:
        return spoken(self.version)

    @property
    def flags(self) -> Mapping[str, Flag]:
        return flags(self.version)

    @property
    def candidates(self) -> Iterator["Candidate"]:
        """Without those of an algorithm that is not known: no rule of ours knows what goes with it."""
        for arm in self.arms:
            if arm.draft and not arm.custom:
                yield Candidate(case=self, arm=arm)

    @property
    def shared(self) -> tuple[Written, ...]:
        return self._written(None, "engine.args", self.server.engine.args)

    def own(self, arm: Arm) -> tuple[Written, ...]:
        return self._written(arm.name, "args", arm.args)

    @property
    def lists(self) -> Iterator[tuple[Written, ...]]:
        """Each argument list of the resource by itself."""
        yield self.shared
        for arm in self.arms:
            yield self.own(arm)

    def _written(self, arm: str | None, path: str, args: Sequence[str]) -> tuple[Written, ...]:
        known = self.flags
        return tuple(
            Written(arm=arm, path=f"{path}[{one.index}]", given=one, flag=known.get(one.name))
            for one in given(tuple(args))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A speculating arm, with all arguments of its command line by the first name of their flags."""

    case: Case
    arm: Arm

    @property
    def algorithm(self) -> str:
        assert self.arm.draft
        return self.arm.draft.algorithm

    @property
    def runs_as(self) -> str:
        """SGLang's own name of the algorithm."""
        return RUNS_AS.get(self.algorithm, self.algorithm)

    @property
    def in_eagle_family(self) -> bool:
        return self.algorithm in EAGLE_FAMILY

    @property
    def branching(self) -> int:
        """How many continuations are kept at each step; 1 is a chain."""
        if self.algorithm == "NGRAM":
            return (self.arm.ngram.breadth if self.arm.ngram else None) or NGRAM_BREADTH
        return self.arm.tree.top_k if self.arm.tree else 1

    @property
    def branches_at(self) -> str:
        """The field that says so."""
        return "ngram.breadth" if self.algorithm == "NGRAM" else "tree.topK"

    @property
    def written(self) -> Mapping[str, Written]:
        return {one.name: one for one in (*self.case.shared, *self.case.own(self.arm))}

    def value(self, flag: str) -> str | None:
        """Of a flag by its first name; None where it is not given."""
        found = self.written.get(flag)
        return found.value if found else None

    def number(self, flag: str) -> int:
        """0 where it is not given, or is none."""
        text = self.value(flag) or ""
        return int(text) if text.isdecimal() else 0

    def refused(self, below: str, message: str) -> Refusal:
        return Refusal(arm=self.arm.name, path=below, message=message)


RUNS_AS = {"NEXTN": "EAGLE", "MTP": "EAGLE"}
"""By their own names they would miss what SGLang does for EAGLE, which it compares before it resolves the alias:
MiMo-V2, Step3p5 and GigaChat3.5 with several MTP layers, DeepSeek-V4 at all (0.5.23, arg_groups/model_overrides,
deepseek_v4_hook.py:148)."""

NGRAM_BREADTH = 10
NGRAM_TOKENS = 12
"""Of 0.5.6 and 0.5.23 where nothing is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`reason` is what would happen otherwise, `source` where that was read or seen (0.5.23 unless it says so)."""

    id: str
    reason: str
    source: str
    broken: Callable[[Case], Iterator[Refusal]]
