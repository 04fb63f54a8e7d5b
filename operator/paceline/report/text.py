"""Readable numbers, and the names of metrics; the same in every format."""

from collections.abc import Iterator
from dataclasses import dataclass

from paceline.core import Bounds
from paceline.core.text import count
from paceline.evidence.round_status import METRICS
from paceline.report.model import MEANS, RunView
from paceline.report.search_model import SearchView, Threshold, Throughput

EMULATED_NOTICE = "Emulated: no model ran, and these numbers are no measurements"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Related metrics: statistic → the metric's name in status, in display order."""

    name: str
    short: str
    says: str
    metrics: dict[str, str]


def _family(name: str, short: str, says: str) -> Family:
    stats = [metric.removesuffix(short) for metric in METRICS if metric.endswith(short)]
    in_order = sorted(stats, key=lambda stat: (stat != "mean", stat))
    return Family(name=name, short=short, says=says, metrics={stat: f"{stat}{short}" for stat in in_order})


LATENCIES = (
    _family("Time to first token", "TTFT", "from request to first token"),
    _family("Time per output token", "TPOT", "between tokens after the first"),
    _family("Time per request", "E2E", "from request to last token"),
)
"""Latencies missing in a run are not shown."""


def latency_families(run: RunView) -> list[Family]:
    """The families that were measured."""
    measured = {value.metric for value in run.values}
    return [family for family in LATENCIES if measured & set(family.metrics.values())]


def ratio_text(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}x"


def interval_text(bounds: Bounds, digits: int = 2) -> str:
    return f"{bounds.lower:.{digits}f}–{bounds.upper:.{digits}f}"


def significant(value: float, figures: int = 3) -> str:
    """This many significant digits, and all before the point: 5.84, 167, 2,010."""
    exponent = int(f"{value:.{figures - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, figures - 1 - exponent)}f}"


def duration_words(value: float) -> str:
    """A waiting time, for example 44 s, 12 min, 3.4 h."""
    for unit, size in (("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} s"


def change(value: float | None) -> str:
    """For example +4.1 %, −22.0 %; empty if there is nothing to compare with."""
    if value is None:
        return ""
    text = f"{100 * value:+.1f} %"
    return "±0.0 %" if text[1:] == "0.0 %" else text.replace("-", "−")


def capital(text: str) -> str:
    """Capitalises only the first letter: names stay unchanged."""
    return text[:1].upper() + text[1:]


def workload_text(name: str) -> str:
    return dict(zip(MEANS, ("all, by weight", "all at a rate"), strict=True)).get(name, name)


def not_measured(search: SearchView) -> list[str]:
    """What a search's table leaves out. At most one sentence."""
    rest = search.candidates - search.measured
    why = "from its measurements the search expects none of them to be the best"
    return [f"{count(rest, 'candidate')} of {search.candidates} never ran: {why}."] if rest else []


def schedules(of: Throughput) -> list[str]:
    """One sentence per arm whose depth follows the load."""
    arms = dict.fromkeys(one.arm for one in of.thresholds)
    return [f"{arm}: {', '.join(_depth(one) for one in of.thresholds if one.arm == arm)}." for arm in arms]


def _depth(one: Threshold) -> str:
    return f"{f'depth {one.steps}' if one.steps else 'no speculation'} from {one.batch_size} requests on"


def beside_the_grid(search: SearchView) -> tuple[str, str]:
    """Points and server starts, each compared with measuring the whole grid once."""
    points, starts = search.points / search.grid_points, search.server_starts / search.grid_starts
    return (
        f"{search.points} of {search.grid_points} ({points:.0%})",
        f"{search.server_starts} of {search.grid_starts} ({starts:.0%})",
    )


def key_figures(run: RunView) -> Iterator[tuple[str, str, str]]:
    """What was measured: name, value, and a detail."""
    known, winner = dict(run.provenance), run.winner or (run.arms[1] if len(run.arms) == 2 else "")
    if arms := [arm for arm in dict.fromkeys((run.arms[0], winner)) if arm in run.speeds]:
        mean = f", mean of {len(run.workloads)} workloads" if len(run.workloads) > 1 else ""
        yield "Output tokens/s", " → ".join(significant(run.speeds[arm]) for arm in arms), " → ".join(arms) + mean
    yield "Hardware", known["Accelerators"].replace("-", " "), ""
    yield "Engine", known["Engine"], ""
    model, _, commit = known["Target"].removeprefix("hf://").partition("@")
    yield "Model", model, commit
    if day := known.get("Finished", known.get("Started", "")).partition(" ")[0]:
        hours = f", {run.cost.gpu_seconds / 3600:.2f} GPU-hours" if run.cost.gpu_seconds else ""
        yield "Measured", day, f"{count(run.cost.rounds, 'round')}{hours}"
