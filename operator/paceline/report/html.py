"""The report as a self-contained HTML document without scripts."""

from collections.abc import Iterator
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from paceline.report import (
    deployment_tables,
    figures,
    over_loads_chart,
    spent,
    tables,
    text,
    trade_off_chart,
)
from paceline.report.draw import arm_name
from paceline.report.model import Report
from paceline.report.sections import sections


def html(report: Report) -> str:
    """The templates insert matplotlib's charts unchanged (`safe`): matplotlib escapes all text in them."""
    environment = Environment(
        loader=PackageLoader("paceline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": text.significant, "span": text.duration_words, "tone": _tone}
    environment.globals |= {
        "anchor": _anchor,
        "arm_name": arm_name,
        "charts": figures,
        "deployed": deployment_tables,
        "over_loads_chart": over_loads_chart.draw_over_loads,
        "sections": sections,
        "spent": spent,
        "tables": tables,
        "text": text,
        "trade_off_chart": trade_off_chart.draw_trade_off,
    }
    return environment.get_template("report.html.j2").render(
        report=report,
        runs={run.name: run for run in report.runs},
        anchors={run.name: _anchor("run", number) for number, run in enumerate(report.runs, 1)} | dict(_pools(report)),
        style=Markup((files("paceline.report") / "templates" / "report.css").read_text("utf-8")),
    )


def _anchor(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def _pools(report: Report) -> Iterator[tuple[str, str]]:
    """A pool's unique name → id of its section."""
    for number, deployment in enumerate(report.deployments, 1):
        for place, pool in enumerate(deployment.pools, 1):
            yield deployment_tables.of_pool(deployment, pool), _anchor(f"deployment-{number}-pool", place)


_TONES = {
    **dict.fromkeys(("Promote", "Found", "promotable", "kept", "rose", "good"), "good"),
    "Reject": "stays",
    **dict.fromkeys(("rejected", "broken", "Error", "error", "fell", "bad"), "bad"),
}


def _tone(word: str) -> str:
    """The CSS class of a run's or a candidate's outcome, or of an interval's result."""
    return _TONES.get(word, "open")
