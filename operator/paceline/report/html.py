"""The report as one HTML document that fetches nothing and runs nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from paceline.report import (
    comparison_tables,
    deployment_tables,
    figures,
    over_loads_chart,
    tables,
    text,
    trade_off_chart,
)
from paceline.report.draw import arm_name
from paceline.report.model import Report, Run
from paceline.report.sections import sections


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A run with its charts; markup that is ours."""

    run: Run
    anchor: str
    """Id of its article."""
    forest: tuple[Markup, Markup] | None
    """For wide pages, for narrow ones."""
    crossover: tuple[tuple[str, Markup], ...]
    """Dataset and chart."""
    trade_offs: tuple[tuple[str, Markup], ...]
    """Dataset and chart."""
    over_loads: tuple[tuple[str, Markup, tuple[str, ...]], ...]
    """Dataset, chart, and its schedules in words."""
    latency: tuple[tuple[text.Family, Markup], ...]
    acceptance: Markup | None
    panels: tuple[tuple[str, Markup, tuple[tuple[str, str], ...]], ...]
    """Workload, chart, each arm's mean."""


def html(report: Report) -> str:
    environment = Environment(
        loader=PackageLoader("paceline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": text.number, "span": text.span, "tone": _tone}
    environment.globals |= {
        "anchor": _anchor,
        "arm_name": arm_name,
        "compared": comparison_tables,
        "deployed": deployment_tables,
        "sections": sections,
        "tables": tables,
        "text": text,
    }
    pages = [_page(run, _anchor("run", number)) for number, run in enumerate(report.runs, 1)]
    return environment.get_template("report.html.j2").render(
        report=report,
        pages=pages,
        runs={page.run.name: page for page in pages},
        anchors={page.run.name: page.anchor for page in pages} | dict(_pools(report)),
        changes=_changes(report),
        evidence=dict(_evidence(report)),
        style=Markup((files("paceline.report") / "templates" / "report.css").read_text("utf-8")),
    )


def _anchor(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def _pools(report: Report) -> Iterator[tuple[str, str]]:
    """What names a pool → id of its section."""
    for number, deployment in enumerate(report.deployments, 1):
        for place, pool in enumerate(deployment.pools, 1):
            yield deployment_tables.of_pool(deployment, pool), _anchor(f"deployment-{number}-pool", place)


def _evidence(report: Report) -> Iterator[tuple[str, tuple[Markup, Markup]]]:
    """Run → its speed-ups, drawn once more where a pool rests on them: for wide pages, for narrow ones."""
    rests_on = {pool.evidence: pool.name for deployment in report.deployments for pool in deployment.pools}
    for run in report.runs:
        if run.name in rests_on and any(one.effects for one in run.candidates):
            title = f"What {rests_on[run.name]} rests on: every candidate over the baseline"
            wide, narrow = (figures.forest(run, size, title) for size in (figures.WIDE, figures.NARROW))
            yield run.name, (_markup(wide), _markup(narrow))


def _changes(report: Report) -> tuple[Markup, Markup] | None:
    """Every change of a comparison, for wide pages and for narrow ones."""
    if report.comparison is None or not any(row.change for row in report.comparison.speed_ups):
        return None
    wide, narrow = (figures.changes(report.comparison, report.runs[1], size) for size in (figures.WIDE, figures.NARROW))
    return _markup(wide), _markup(narrow)


def _page(run: Run, anchor: str) -> Page:
    measured = {value.metric for value in run.values}
    means = {(one.workload, one.arm): one.typical for one in run.series if one.typical}
    judged = any(one.effects for one in run.candidates)
    return Page(
        run=run,
        anchor=anchor,
        forest=(_markup(figures.forest(run, figures.WIDE)), _markup(figures.forest(run, figures.NARROW)))
        if judged
        else None,
        crossover=tuple(
            (text.workload(dataset), _markup(figures.crossing(run, dataset, curves)))
            for dataset, curves in (run.crossover.curves.items() if run.crossover else ())
        ),
        trade_offs=tuple((one.dataset, _markup(trade_off_chart.chart(run, one))) for one in run.trade_offs),
        over_loads=tuple(
            (one.dataset, _markup(over_loads_chart.chart(run, one)), tuple(text.schedules(one)))
            for one in run.over_loads
        ),
        latency=tuple(
            (family, _markup(figures.latency(run, family)))
            for family in text.LATENCIES
            if measured & set(family.metrics.values())
        ),
        acceptance=_markup(figures.acceptance(run)) if "acceptLength" in measured else None,
        panels=tuple(
            (
                name,
                _markup(chart),
                tuple((arm, text.number(means[name, arm])) for arm in run.arms if (name, arm) in means),
            )
            for name, chart in figures.panels(run)
        ),
    )


def _markup(svg: str) -> Markup:
    """Written by matplotlib, with every text escaped."""
    return Markup(svg)


TONES = {
    **dict.fromkeys(("Promote", "Found", "promotable", "kept", "rose", "good"), "good"),
    "Reject": "stays",
    **dict.fromkeys(("rejected", "broken", "Error", "error", "fell", "bad"), "bad"),
}


def _tone(word: str) -> str:
    """The class of an outcome, of a candidate's or of what an interval shows."""
    return TONES.get(word, "open")
