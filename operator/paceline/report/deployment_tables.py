"""The tables of a deployment; HTML and Markdown share them."""

from collections.abc import Sequence

from paceline.core import BASELINE
from paceline.report.deployment_model import DeploymentView, EventView, PoolView
from paceline.report.model import RunView
from paceline.report.tables import HtmlTable, TableCell
from paceline.report.text import interval_text, key_figures, ratio_text, significant

RATES = (
    "All numbers are of one server: the mean of those that are ready, between two readings of their own counters, "
    "next to the means of the evidence."
)
HISTORY = (
    "The latest first: what the pool served, which of its runs have ended and what they found, what was held. A "
    "revision that is kept is one to go back to, by kubectl paceline rollback."
)


def headline(of: DeploymentView) -> str:
    """For example: latency serves wide; throughput serves the baseline."""
    names = {"": "nothing yet", BASELINE: "the baseline"}
    return "; ".join(f"{pool.name} serves {names.get(pool.arm, pool.arm)}" for pool in of.pools) or "No pools"


def pools_table(of: DeploymentView, runs: Sequence[RunView]) -> HtmlTable:
    """One line per pool; `runs` are the page's."""
    by_name = {run.name: run for run in runs}
    rows = tuple(
        (
            TableCell(text=pool.name, link=of_pool(of, pool)),
            TableCell(text=pool.arm or "nothing yet", note=marks(pool)),
            TableCell(text=speed_up(pool), note=interval_text(pool.bounds) if pool.bounds else ""),
            *_measured(pool, by_name.get(pool.evidence)),
            TableCell(text=_servers(pool)),
            TableCell(text=_short(pool.since)),
        )
        for pool in of.pools
    )
    head = ("Pool", "Serves", "Speed-up", "Worst workload", "Output tokens/s", "Servers ready", "Since, UTC")
    return HtmlTable(head=head, words=2, rows=rows)


def _measured(pool: PoolView, evidence: RunView | None) -> tuple[TableCell, TableCell]:
    """The worst workload, and tokens per second of the baseline and the serving arm."""
    if evidence is None:
        return TableCell(text="–"), TableCell(text="–")
    worst = next((one.worst for one in evidence.candidates if one.name == pool.arm), None)
    speeds = [significant(evidence.speeds[arm]) for arm in (evidence.arms[0], pool.arm) if arm in evidence.speeds]
    said = TableCell(text=ratio_text(worst.bounds.ratio), note=worst.workload) if worst else TableCell(text="–")
    return said, TableCell(text=" → ".join(speeds) or "–")


def figures(of: DeploymentView, runs: Sequence[RunView]) -> list[tuple[str, str, str]]:
    """Hardware, engine and model, if a run on the page knows them."""
    return [one for run in runs[:1] for one in key_figures(run) if one[0] in ("Hardware", "Engine", "Model")]


def of_pool(of: DeploymentView, pool: PoolView) -> str:
    """The pool's unique name on a page with several deployments; no run has such a name."""
    return f"pool {of.namespace}/{of.name}/{pool.name}"


def _short(time: str) -> str:
    return time.removesuffix(" UTC") or "–"


def marks(pool: PoolView) -> str:
    return ", ".join(word for word, _ in pool.marks)


def speed_up(pool: PoolView) -> str:
    return _speed(pool.speed_up, emulated=pool.emulated, imported=pool.imported) or "–"


def _speed(value: float | None, *, emulated: bool, imported: bool) -> str:
    if value is None:
        return ""
    kinds = [word for word, holds in (("emulated", emulated), ("measured without a cluster", imported)) if holds]
    return f"{ratio_text(value)} ({', '.join(kinds)})" if kinds else ratio_text(value)


def _servers(pool: PoolView) -> str:
    return str(pool.ready) if pool.asked is None else f"{pool.ready} of {pool.asked}"


def conditions_table(of: DeploymentView) -> HtmlTable:
    rows = tuple(
        (
            TableCell(text=one.type),
            TableCell(text=one.status, tone=one.tone),
            TableCell(text=one.reason),
            TableCell(text=one.message),
            TableCell(text=_short(one.since)),
        )
        for one in of.conditions
    )
    return HtmlTable(head=("Condition", "Status", "Reason", "Message", "Since, UTC"), words=5, rows=rows)


def rates(pool: PoolView) -> HtmlTable:
    """Current rates next to the measured ones."""
    rows = tuple(
        (
            TableCell(text=one.of, note="emulated" if one.emulated else ""),
            TableCell(text=_plain(one.requests)),
            TableCell(text=_plain(one.tokens_per_second)),
            TableCell(text=_plain(one.accept_length)),
            TableCell(text=_milliseconds(one.ttft)),
            TableCell(text=_milliseconds(one.per_token)),
        )
        for one in pool.rates
    )
    head = (pool.arm, "Requests", "Tokens/s", "Acceptance", "TTFT, ms", "Per token, ms")
    return HtmlTable(head=head, words=1, rows=rows)


def _plain(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else significant(1000 * value)


def history_table(pool: PoolView) -> HtmlTable:
    rows = tuple(
        (
            TableCell(text=_short(one.when)),
            TableCell(text=one.what, tone=one.tone),
            TableCell(text=one.arm or "–"),
            TableCell(text=_speed(one.speed_up, emulated=one.emulated, imported=one.imported) or "–"),
            TableCell(text=_why(one), note=_by(one)),
            TableCell(text=one.run or "–", link=one.run),
            TableCell(text=one.revision or "–", note=_kept(one)),
        )
        for one in pool.history
    )
    return HtmlTable(head=("When, UTC", "What", "Arm", "Speed-up", "Why", "Run", "Revision"), words=7, rows=rows)


def _why(one: EventView) -> str:
    return one.why or "–"


def _by(one: EventView) -> str:
    return f"asked for by {one.request}" if one.request else ""


def _kept(one: EventView) -> str:
    return "" if one.kept is None else "kept" if one.kept else "no longer kept"
