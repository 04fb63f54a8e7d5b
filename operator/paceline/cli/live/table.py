"""The history of pools as a table: what served when, how it came to, and on which evidence."""

from rich.table import Table

from paceline.api.status import Change
from paceline.cli.live.deployment import Pool
from paceline.cli.live.words import faster, marked, when

COLUMNS = ("time", "pool", "how", "serves", "speed-up", "revision", "evidence", "request", "why")


def table(pools: tuple[Pool, ...]) -> Table:
    """The latest change first, pool by pool."""
    drawn = Table(*COLUMNS, box=None, pad_edge=False, header_style="dim")
    for column in drawn.columns[:-1]:
        column.no_wrap = True
    for pool in pools:
        for change in pool.status.history:
            drawn.add_row(*row(pool, change))
    return drawn


def row(pool: Pool, change: Change) -> tuple[str, ...]:
    return (
        when(change.time),
        pool.name,
        change.kind or "",
        change.arm or "nothing",
        marked(faster(change.speedup), emulated=change.evidence in pool.emulated),
        change.revision,
        change.evidence,
        change.request,
        change.why,
    )


def in_short(pool: Pool, change: Change) -> str:
    """The same, short enough for a tree."""
    speed = marked(faster(change.speedup), emulated=change.evidence in pool.emulated)
    asked = f", asked for by {change.request}" if change.request else ""
    return " ".join(filter(None, (when(change.time), change.kind or "", change.arm or "nothing", speed))) + asked
