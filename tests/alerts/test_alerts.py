"""The chart's alerts, by promtool: each fires when it should and not otherwise, and has its lines in the runbook."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.alerts.cases import CASES, Case
from tests.api.chart import of_kind, rendered
from tests.unit.docs.test_docs import anchors

ROOT = Path(__file__).parents[2]
FILE = ROOT / "charts" / "paceline" / "files" / "alerts.yaml"
RUNBOOK = ROOT / "docs" / "runbook.md"
CACHE = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline"))
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]
}
MOST_CHARACTERS = 300
"""Of a description, which ends in a message on somebody's phone."""


def promtool(*args: str | Path) -> "subprocess.CompletedProcess[str]":
    found = shutil.which("promtool") or CACHE / "prometheus" / "usr" / "bin" / "promtool"
    assert Path(found).exists(), "no promtool: dev/install-prometheus"
    return subprocess.run([found, *args], capture_output=True, text=True, timeout=120, check=False)


def in_promtools_words(case: Case) -> dict[str, Any]:
    firing = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    labels = firing.removesuffix("}") + f",{case.fires}}}"
    before = f"{int(case.at.removesuffix('m')) - 1}m"
    return {
        "name": f"{case.alert}: {case.story}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [
            {"expr": firing, "eval_time": before, "exp_samples": []},
            {
                "expr": firing,
                "eval_time": case.at,
                "exp_samples": [{"labels": labels, "value": 1}] if case.fires else [],
            },
        ],
    }


def test_each_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    tests = {"rule_files": [str(FILE)], "evaluation_interval": "1m", "tests": list(map(in_promtools_words, CASES))}
    (tmp_path / "tests.yaml").write_text(json.dumps(tests))
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_has_a_story_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    told = Counter((case.alert, bool(case.fires)) for case in CASES)
    assert {alert for alert, _ in told} == ALERTS.keys()
    assert [(alert, fires) for alert in ALERTS for fires in (True, False) if not told[alert, fires]] == []


@pytest.mark.parametrize("case", [case for case in CASES if case.summary], ids=lambda case: case.alert)
def test_its_words_name_what_it_is_about(case: Case, tmp_path: Path) -> None:
    """promtool compares all annotations; of these only the summary is of interest, so the rule is left with that."""
    rule = {**ALERTS[case.alert], "annotations": {"summary": ALERTS[case.alert]["annotations"]["summary"]}}
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "one", "rules": [rule]}]}))
    labels = dict(re.findall(r'(\w+)="([^"]*)"', case.fires))
    expected = {"exp_labels": labels, "exp_annotations": {"summary": case.summary}}
    test = in_promtools_words(case) | {
        "promql_expr_test": [],
        "alert_rule_test": [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": [expected]}],
    }
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.yaml").write_text(json.dumps(whole))
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_file_is_good_and_each_alert_says_what_an_operator_needs() -> None:
    done = promtool("check", "rules", FILE)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, rule in ALERTS.items():
        assert name.startswith("Paceline")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        said = rule["annotations"]
        assert said.keys() == {"summary", "description", "runbook_url"}
        assert len(said["description"]) <= MOST_CHARACTERS
        assert said["runbook_url"] == f"docs/runbook.md#{name.lower()}"


def test_every_alert_is_in_the_runbook_and_nothing_else_is() -> None:
    sections = re.split(r"^## ", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]
    of = {section.splitlines()[0]: section for section in sections}
    assert [name for name in of if name.startswith("Paceline")] == list(ALERTS)
    for name in ALERTS:
        assert name.lower() in anchors(RUNBOOK)
        for part in ("**Means.**", "**Look.**", "**Do.**"):
            assert part in of[name], (name, part)


def test_the_chart_makes_a_rule_of_the_file_and_only_if_asked() -> None:
    assert of_kind(rendered(), "PrometheusRule", "PodMonitor") == []
    objects = rendered(
        prometheusRule__enabled=True,
        prometheusRule__labels={"release": "monitoring"},
        prometheusRule__runbook="https://wiki.example.com/paceline",
        podMonitor__enabled=True,
    )
    (rule,) = of_kind(objects, "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "monitoring"
    said = json.dumps(yaml.safe_load(FILE.read_text())).replace("docs/runbook.md", "https://wiki.example.com/paceline")
    assert rule["spec"] == json.loads(said)
    (monitor,) = of_kind(objects, "PodMonitor")
    (deployment,) = of_kind(objects, "Deployment")
    assert monitor["spec"]["selector"] == deployment["spec"]["selector"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert endpoint == {"port": "metrics", "honorLabels": True}
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
