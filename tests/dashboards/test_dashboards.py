"""The dashboards: known to Grafana's own SDK, in the chart; stories for queries that are seldom answered."""

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import REGISTRY
from tests.alerts.test_alerts import promtool
from tests.api.chart import of_kind, rendered
from tests.dashboards.asked import boards, panels, queries, with_values
from tests.dashboards.quiet import STORIES

from paceline.controller import metrics

ASKED = {one.where: one for uid, board in boards().items() for one in queries(uid, board)}
OF_PROMETHEUS_ALONE = {"step", "textFormat", "titleFormat", "useValueForTime"}
"""Fields of an annotation that only Grafana's data source knows, and its SDK does not."""


@pytest.mark.parametrize("uid", boards())
def test_grafanas_own_sdk_knows_every_field(uid: str) -> None:
    """What it reads and writes again has lost nothing."""
    register_default_plugins()
    board = boards()[uid]
    for annotation in board["annotations"]["list"]:
        for name in OF_PROMETHEUS_ALONE:
            del annotation[name]
    again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    assert list(lost(board, again)) == []


def lost(had: Any, has: Any, where: str = "") -> Any:
    if isinstance(had, dict) and isinstance(has, dict):
        for key, value in had.items():
            yield from lost(value, has.get(key), f"{where}.{key}")
    elif isinstance(had, list) and isinstance(has, list) and len(had) == len(has):
        for number, (one, other) in enumerate(zip(had, has, strict=True)):
            yield from lost(one, other, f"{where}.{number}")
    elif had != has:
        yield where


@pytest.mark.parametrize("uid", boards())
def test_panels_fill_their_rows_and_say_what_they_answer(uid: str) -> None:
    board = boards()[uid]
    places = [panel["gridPos"] for panel in panels(board)]
    for _, line in groupby(places, key=lambda place: place["y"]):
        assert sum(place["w"] for place in line) == 24
    ids = [panel["id"] for panel in board["panels"]]
    assert len({*ids}) == len(ids)
    assert all(len(panel["description"]) >= 15 and panel["title"] for panel in panels(board))
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels(board))


def test_a_board_has_only_variables_that_it_offers() -> None:
    for uid, board in boards().items():
        offered = {variable["name"] for variable in board["templating"]["list"]}
        used = set(re.findall(r"\$(\w+)", " ".join(one.expr for one in queries(uid, board)))) - {"__rate_interval"}
        assert used <= offered, uid
        assert offered - used == {"datasource"}, uid


def test_every_metric_of_ours_is_one_that_the_operator_exports() -> None:
    exported = {family.name for family in REGISTRY.collect()} | set(vars(metrics))
    for where, one in ASKED.items():
        for name in re.findall(r"\bpaceline_(?!dev_)\w+", one.expr):
            assert re.sub(r"_(total|bucket|count)$", "", name) in exported, where


def panel(uid: str, title: str) -> Any:
    return next(one for one in panels(boards()[uid]) if one["title"] == title)


def test_the_name_of_the_arm_is_larger_than_since_when_it_serves() -> None:
    text = panel("paceline-deployment", "Arm")["options"]["text"]
    assert text["titleSize"] > text["valueSize"]


@pytest.mark.parametrize(("letter", "true", "false"), [("A", "green", "red"), ("B", "red", "green")])
def test_a_condition_that_needs_somebody_is_red(letter: str, true: str, false: str) -> None:
    """A is Ready; B is Stalled and SpeculationDegraded, whose values begin at 2."""
    conditions = panel("paceline-deployment", "Conditions")
    words = conditions["fieldConfig"]["defaults"]["mappings"][0]["options"]
    base = {"A": 0, "B": 2}[letter]
    assert (words[str(base + 1)]["color"], words[str(base)]["color"]) == (true, false)
    expr = next(one["expr"] for one in conditions["targets"] if one["refId"] == letter)
    assert ("Ready" in expr) == (letter == "A")
    assert expr.startswith("2 + ") == (letter == "B")


def test_a_degraded_row_is_first_and_red() -> None:
    serves = panel("paceline-fleet", "What serves")
    assert serves["options"]["sortBy"] == [{"displayName": "Degraded", "desc": True}]
    (own,) = (each for each in serves["fieldConfig"]["overrides"] if each["matcher"]["options"] == "Degraded")
    said = {one["id"]: one["value"] for one in own["properties"]}
    assert said["custom.cellOptions"]["applyToRow"] is True
    assert said["mappings"][0]["options"]["1"]["color"] == "red"


def test_of_two_pools_one_speculates_and_both_are_marked_as_their_deployment_is(tmp_path: Path) -> None:
    """Two scraped processes told of them: no pool counts twice."""
    of = [f'namespace="models",name="coder",pool="{pool}"' for pool in ("fast", "slow")]
    series = {f'paceline_pool_ready_servers{{{pool},pod="{pod}"}}': "2x10" for pool in of for pod in "ab"}
    for pool, arm in zip(of, ("wide", "baseline"), strict=True):
        series |= {f'paceline_pool_changed_timestamp_seconds{{{pool},arm="{arm}",pod="{pod}"}}': "7x10" for pod in "ab"}
    condition = 'kind="speculativedeployments",type="SpeculationDegraded",namespace="models",name="coder"'
    series[f'paceline_condition{{{condition},pod="a"}}'] = "1x10"
    expected = {
        "paceline-fleet: Pools A": [("{}", 1)],
        "paceline-fleet: Pools B": [("{}", 2)],
        "paceline-fleet: What serves F": [(f"{{{pool}}}", 1) for pool in of],
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": with_values(ASKED[where].expr, {}, "5m"),
                "eval_time": "9m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
            }
            for where, samples in expected.items()
        ],
    }
    (tmp_path / "tests.yaml").write_text(json.dumps({"tests": [test]}))
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_query_without_an_answer_has_one_in_its_story(tmp_path: Path) -> None:
    assert STORIES.keys() <= ASKED.keys()
    rules = [
        {"alert": f"Query{number}", "expr": f"count({with_values(ASKED[where].expr, {}, '5m')}) > 0"}
        for number, where in enumerate(STORIES)
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    tests = [
        {
            "name": where,
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in story.series.items()],
            "promql_expr_test": [
                {
                    "expr": f'ALERTS{{alertname="Query{number}"}}',
                    "eval_time": "9m",
                    "exp_samples": [{"labels": f'ALERTS{{alertname="Query{number}",alertstate="firing"}}', "value": 1}],
                }
            ],
        }
        for number, (where, story) in enumerate(STORIES.items())
    ]
    (tmp_path / "tests.yaml").write_text(json.dumps({"rule_files": ["rules.yaml"], "tests": tests}))
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_hands_them_to_grafanas_sidecar_if_asked() -> None:
    assert [one for one in of_kind(rendered(), "ConfigMap") if "grafana_dashboard" in one["metadata"]["labels"]] == []
    found = of_kind(
        rendered(
            dashboards__enabled=True,
            dashboards__namespace="monitoring",
            dashboards__annotations={"grafana_folder": "Paceline"},
        ),
        "ConfigMap",
    )
    maps = [one for one in found if one["metadata"]["labels"].get("grafana_dashboard") == "1"]
    assert {file: json.loads(text) for one in maps for file, text in one["data"].items()} == {
        f"{uid}.json": board for uid, board in boards().items()
    }
    for one in maps:
        assert one["metadata"]["namespace"] == "monitoring"
        assert one["metadata"]["annotations"] == {"grafana_folder": "Paceline"}


def test_a_monitor_of_the_servers_gives_the_labels_that_are_asked_for() -> None:
    assert of_kind(rendered(), "PodMonitor") == []
    (everywhere,) = of_kind(rendered(podMonitor__servers=True), "PodMonitor")
    assert everywhere["spec"]["namespaceSelector"] == {"any": True}
    (named,) = of_kind(rendered(podMonitor__servers=True, namespaces=["models"]), "PodMonitor")
    assert named["spec"]["namespaceSelector"] == {"matchNames": ["models"]}
    given = {re.sub(r"\W", "_", label) for label in named["spec"]["podTargetLabels"]}
    asked = {label for one in ASKED.values() for label in re.findall(r"\bpaceline_dev_\w+", one.expr)}
    assert asked == given
