"""What the dashboards are made of, before Grafana's JSON is: panels with their queries, variables, annotations.

In a query `$of` and the like are Grafana's variables, and `$__rate_interval` is at least four scrapes long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    LINES = "timeseries"
    STATES = "state-timeline"
    NUMBER = "stat"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    expr: str
    legend: str = ""
    """`{{label}}` is the series' own."""
    now: bool = False
    """Whether only the latest value is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How one series is drawn that is no measurement but what one is compared with."""

    legend: str
    """A regular expression for the whole of its name."""
    colour: str
    fill_down_to: str = ""
    """The name of another series: the band between both is filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    description: str
    """What it answers, and what to do where it is out of the ordinary: shown behind the (i)."""
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    unit: str = "short"
    width: int = 8
    """Of 24."""
    height: int = 7
    decimals: int | None = None
    least: float | None = 0
    most: float | None = None
    lines: tuple[Line, ...] = ()
    colours: Mapping[float, str] = field(default_factory=dict)
    """From this value on: this colour. The first is the base, whatever its value."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Value → word and colour shown instead."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of a table: label or query → heading, in order; others are left out."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of a table: heading → unit."""
    marked: str = ""
    """Of a table: the heading of the column that `words` are of. It colours its row, and the highest stands first."""
    name_first: bool = False
    """Of numbers: the name is the large figure, the value the small one."""
    stacked: bool = False
    repeat: str = ""
    """The variable of whose values each has a panel of its own, side by side."""
    link: str = ""
    """Of a table: the dashboard that a row leads to, with its namespace and deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    label: str
    metric: str
    """Series whose values of `of` are offered."""
    of: str
    several: bool = True
    """Whether several may be chosen, and all are at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Marks in all panels. Where `at_value` is set, the value of the series is the time, in milliseconds."""

    name: str
    expr: str
    title: str
    text: str
    colour: str
    at_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    since: str = "now-6h"
