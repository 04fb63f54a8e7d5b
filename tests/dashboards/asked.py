"""What the dashboards ask Prometheus, as Grafana does: the queries of their JSON with values for its variables."""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[2] / "charts" / "paceline" / "files" / "dashboards"
ALL = ".*"
Labels = Mapping[str, str]
Points = list[tuple[float, float]]
"""Time and value."""


def boards() -> dict[str, dict[str, Any]]:
    """Uid → dashboard, as the chart has it."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(DIRECTORY.glob("*.json"))}


@dataclass(frozen=True, slots=True)
class Asked:
    """One query; `where` is the dashboard and the title of its panel, variable or annotation."""

    where: str
    expr: str
    now: bool = False


def panels(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Those that draw something, in the order of reading."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def queries(uid: str, board: Mapping[str, Any]) -> Iterator[Asked]:
    """Every query of every panel and annotation."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield Asked(f"{uid}: {panel['title']} {target['refId']}", target["expr"], target.get("instant", False))
    for annotation in board["annotations"]["list"]:
        yield Asked(f"{uid}: {annotation['name']}", annotation["expr"])


@dataclass(frozen=True, slots=True)
class Offered:
    """The query of a variable: values of a label."""

    where: str
    name: str
    metric: str
    label: str


def variables(uid: str, board: Mapping[str, Any]) -> Iterator[Offered]:
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert found, variable["query"]
            yield Offered(f"{uid}: ${variable['name']}", variable["name"], found[1], found[2])


def with_values(expr: str, values: Mapping[str, str], rate: str = "10s") -> str:
    """As Grafana fills variables in: those that are not in `values` have all values."""
    expr = expr.replace("$__rate_interval", rate)
    return re.sub(r"\$(\w+)", lambda found: values.get(found[1], ALL), expr)


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server's HTTP API, which Grafana's data source asks."""

    url: str

    def ask(self, path: str, **form: str) -> Any:
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f"{self.url}api/v1/{path}", data or None, timeout=30) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def values(self, metric: str, label: str) -> list[str]:
        path = f"label/{label}/values?" + urllib.parse.urlencode({"match[]": metric})
        with urllib.request.urlopen(f"{self.url}api/v1/{path}", timeout=30) as answer:
            found: list[str] = json.load(answer)["data"]
        return found

    def now(self, expr: str, at: float) -> list[tuple[Labels, float]]:
        """Series that have a value that is a number."""
        found = self.ask("query", query=expr, time=str(at))["result"]
        read = [(one["metric"], float(one["value"][1])) for one in found]
        return [(labels, value) for labels, value in read if not isnan(value)]

    def course(self, expr: str, start: float, end: float, step: float) -> list[tuple[Labels, Points]]:
        """Series with those of their points that are numbers; none without any."""
        found = self.ask("query_range", query=expr, start=str(start), end=str(end), step=str(step))["result"]
        read = [(one["metric"], [(at, float(value)) for at, value in one["values"]]) for one in found]
        numbers = [(labels, [point for point in points if not isnan(point[1])]) for labels, points in read]
        return [(labels, points) for labels, points in numbers if points]
