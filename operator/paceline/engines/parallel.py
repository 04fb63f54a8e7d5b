"""Compares the accelerators that the arguments of all arms need with those of the resource."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from paceline.core import Server
from paceline.engines.arguments import FlagList, ParsedFlag
from paceline.engines.bounds import parse_number
from paceline.engines.refusal import Refusal

_RULE = "parallel-fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """An engine's flags, by all their names.

    Each unit of `copies` takes its own accelerators, as many as tensor parallelism. `groups` divide tensor parallelism,
    and each group has all attention heads; so do those copies that `regrouped` names if the flag `grouping` is set.
    `shares` divide tensor parallelism, but a share does not have all attention heads. `source` is where the engine
    counts them.
    """

    copies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    grouping: str = ""
    regrouped: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    source: str

    def attention_groups(self, server: Server, flags: FlagList) -> int:
        """Number of groups into which tensor parallelism is divided; each has all attention heads."""
        return _product(self._divide(flags.parse(server.engine.args), self.groups))

    def refusals(self, server: Server, flags: FlagList) -> Iterator[Refusal]:
        """Too few accelerators end the engine at its start, by an assertion or for lack of devices."""
        accelerator, shared = server.accelerator, flags.parse(server.engine.args)
        size, there = accelerator.tensor_parallel_size, accelerator.count * accelerator.nodes
        divide = self._divide(shared, (*self.groups, *self.shares))
        if divide and size % _product(divide):
            message = f"tensorParallelSize {size} must be divisible by {_written(divide)}"
            yield replace(divide[0].refused(message), rule=_RULE)
        copies = [one for one in _above_one(shared, self.copies) if one not in divide]
        if copies and (taken := size * _product(copies)) > there:
            message = (
                f"{_written(copies)} x tensorParallelSize {size} takes {taken} accelerators, but a server has "
                f"{there}: set spec.accelerator.tensorParallelSize lower, or count higher"
            )
            yield replace(copies[0].refused(message), rule=_RULE)

    def _divide(self, shared: tuple[ParsedFlag, ...], groups: tuple[str, ...]) -> list[ParsedFlag]:
        grouped = any(parsed.name == self.grouping for parsed in shared)
        return _above_one(shared, (*groups, *(self.regrouped if grouped else ())))


def _above_one(shared: tuple[ParsedFlag, ...], names: tuple[str, ...]) -> list[ParsedFlag]:
    return [parsed for parsed in shared if parsed.name in names and (parse_number(parsed.value) or 1) > 1]


def _product(parsed: list[ParsedFlag]) -> int:
    return math.prod(parse_number(one.value) or 1 for one in parsed)


def _written(parsed: list[ParsedFlag]) -> str:
    return " x ".join(f"{one.written}={one.value}" for one in parsed)
