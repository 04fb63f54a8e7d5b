"""The table of `kubectl paceline top`."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.cli.live.traffic import Speed, Traffic
from paceline.cli.live.wording import marked
from paceline.core.text import count
from paceline.report.text import significant

_COLUMNS = ("pool", "", "requests", "tokens/s", "acceptance", "TTFT", "per token")
_NONE = "–"


def speeds_table(pools: Sequence[Traffic]) -> RenderableType:
    """All numbers are per server: their current mean, and the evidence's."""
    drawn = Table(*_COLUMNS, box=None, pad_edge=False, header_style="dim")
    for column in drawn.columns[2:]:
        column.justify = "right"
    for pool in pools:
        servers = f"{pool.arm or 'nothing'} now, mean of {count(pool.servers, 'server')}"
        drawn.add_row(pool.pool, servers, *_cells(pool.now or Speed()))
        for each in pool.measured:
            drawn.add_row("", marked(f"measured at {each.workload}", emulated=pool.emulated), *_cells(each.speed))
    said = [text for pool in pools for text in (*pool.errors, *_missing(pool))]
    return Group(drawn, *(Text(text, style="yellow") for text in said))


def _missing(pool: Traffic) -> list[str]:
    if pool.measured or not pool.arm:
        return []
    why = f"its evidence {pool.evidence} has been deleted" if pool.evidence else f"{pool.arm} serves without evidence"
    return [f"{pool.pool}: {why}, so there is nothing to compare with"]


def _cells(speed: Speed) -> tuple[str, ...]:
    return (
        _shown(speed.requests_under_way),
        _shown(speed.tokens_per_second),
        _shown(speed.accept_length),
        _milliseconds(speed.ttft_seconds),
        _milliseconds(speed.itl_seconds),
    )


def _shown(value: float | None) -> str:
    return _NONE if value is None else significant(value)


def _milliseconds(seconds: float | None) -> str:
    return _NONE if seconds is None else f"{significant(1000 * seconds)} ms"
