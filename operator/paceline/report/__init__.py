"""Renders runs as a report. Pure: manifests in, text out; it fetches nothing and does not repeat decisions.

    `build_report`  manifests → `Report`, the content as words and numbers (`build`: `measured`, `crossover`, `facts`)
    `FORMATS`       `Report` → HTML (`html`, with the charts of `figures`), Markdown (`markdown`), JSON (`data`)

HTML needs the extra `report`: jinja2 and matplotlib, which are imported on first use.
"""

from collections.abc import Callable, Mapping

from paceline.report.build import build_report, runs
from paceline.report.data import json
from paceline.report.markdown import markdown
from paceline.report.model import Report


def _html(report: Report) -> str:
    from paceline.report.html import html as write

    return write(report)


FORMATS: Mapping[str, Callable[[Report], str]] = {"html": _html, "md": markdown, "json": json}
"""File name extension → writer of that format."""

__all__ = ["FORMATS", "Report", "build_report", "runs"]
