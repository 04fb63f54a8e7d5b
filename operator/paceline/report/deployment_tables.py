"""The tables of a deployment; HTML and Markdown share them."""

from collections.abc import Sequence

from paceline.core import BASELINE
from paceline.report.deployment_model import Deployment, Event, Pool
from paceline.report.model import Run
from paceline.report.tables import Cell, Table
from paceline.report.text import interval, key_figures, number, ratio

RATES = (
    "All numbers are of one server: the mean of those that are ready, between two readings of their own counters, "
    "beside the means of the evidence."
)
HISTORY = (
    "The latest first: what the pool served, which of its runs have ended and what they found, what was held. A "
    "revision that is kept is one to go back to, by kubectl paceline rollback."
)


def headline(of: Deployment) -> str:
    """latency serves wide; throughput serves the baseline."""
    names = {"": "nothing yet", BASELINE: "the baseline"}
    return "; ".join(f"{pool.name} serves {names.get(pool.arm, pool.arm)}" for pool in of.pools) or "No pools"


def pools(of: Deployment, runs: Sequence[Run]) -> Table:
    """A line for each; `runs` are those of the page."""
    by_name = {run.name: run for run in runs}
    rows = tuple(
        (
            Cell(text=pool.name, link=of_pool(of, pool)),
            Cell(text=pool.arm or "nothing yet", note=marks(pool)),
            Cell(text=speed_up(pool), note=interval(pool.bounds) if pool.bounds else ""),
            *_measured(pool, by_name.get(pool.evidence)),
            Cell(text=_servers(pool)),
            Cell(text=_short(pool.since)),
        )
        for pool in of.pools
    )
    head = ("Pool", "Serves", "Speed-up", "Worst workload", "Output tokens/s", "Servers ready", "Since, UTC")
    return Table(head=head, words=2, rows=rows)


def _measured(pool: Pool, evidence: Run | None) -> tuple[Cell, Cell]:
    """The worst workload, and tokens per second at the baseline and as served."""
    if evidence is None:
        return Cell(text="–"), Cell(text="–")
    worst = next((one.worst for one in evidence.candidates if one.name == pool.arm), None)
    speeds = [number(evidence.speeds[arm]) for arm in (evidence.arms[0], pool.arm) if arm in evidence.speeds]
    said = Cell(text=ratio(worst.bounds.ratio), note=worst.workload) if worst else Cell(text="–")
    return said, Cell(text=" → ".join(speeds) or "–")


def figures(of: Deployment, runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """Of what is what serves, as far as a run of the page knows it."""
    return [one for run in runs[:1] for one in key_figures(run) if one[0] in ("Hardware", "Engine", "Model")]


def of_pool(of: Deployment, pool: Pool) -> str:
    """What names it on a page that may have several deployments; no run has such a name."""
    return f"pool {of.namespace}/{of.name}/{pool.name}"


def _short(time: str) -> str:
    return time.removesuffix(" UTC") or "–"


def marks(pool: Pool) -> str:
    return ", ".join(word for word, _ in pool.marks)


def speed_up(pool: Pool) -> str:
    return _speed(pool.speed_up, emulated=pool.emulated, imported=pool.imported) or "–"


def _speed(value: float | None, *, emulated: bool, imported: bool) -> str:
    if value is None:
        return ""
    kinds = [word for word, holds in (("emulated", emulated), ("measured without a cluster", imported)) if holds]
    return f"{ratio(value)} ({', '.join(kinds)})" if kinds else ratio(value)


def _servers(pool: Pool) -> str:
    return str(pool.ready) if pool.asked is None else f"{pool.ready} of {pool.asked}"


def conditions(of: Deployment) -> Table:
    rows = tuple(
        (
            Cell(text=one.type),
            Cell(text=one.status, tone=one.tone),
            Cell(text=one.reason),
            Cell(text=one.message),
            Cell(text=_short(one.since)),
        )
        for one in of.conditions
    )
    return Table(head=("Condition", "Status", "Reason", "Message", "Since, UTC"), words=5, rows=rows)


def rates(pool: Pool) -> Table:
    """Now beside what was measured."""
    rows = tuple(
        (
            Cell(text=one.of, note="emulated" if one.emulated else ""),
            Cell(text=_plain(one.requests)),
            Cell(text=_plain(one.tokens_per_second)),
            Cell(text=_plain(one.accept_length)),
            Cell(text=_milliseconds(one.ttft)),
            Cell(text=_milliseconds(one.per_token)),
        )
        for one in pool.rates
    )
    head = (pool.arm, "Requests", "Tokens/s", "Acceptance", "TTFT, ms", "Per token, ms")
    return Table(head=head, words=1, rows=rows)


def _plain(value: float | None) -> str:
    return "–" if value is None else number(value)


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else number(1000 * value)


def history(pool: Pool) -> Table:
    rows = tuple(
        (
            Cell(text=_short(one.when)),
            Cell(text=one.what, tone=one.tone),
            Cell(text=one.arm or "–"),
            Cell(text=_speed(one.speed_up, emulated=one.emulated, imported=one.imported) or "–"),
            Cell(text=_why(one), note=_by(one)),
            Cell(text=one.run or "–", link=one.run),
            Cell(text=one.revision or "–", note=_kept(one)),
        )
        for one in pool.history
    )
    return Table(head=("When, UTC", "What", "Arm", "Speed-up", "Why", "Run", "Revision"), words=7, rows=rows)


def _why(one: Event) -> str:
    return one.why or "–"


def _by(one: Event) -> str:
    return f"asked for by {one.request}" if one.request else ""


def _kept(one: Event) -> str:
    return "" if one.kept is None else "kept" if one.kept else "no longer kept"
