"""Limits: of the operator's own requests, from the chart's values to the settings; of a spec, at the API server."""

from typing import Any

import pytest
from tests.api.chart import of_kind, rendered
from tests.api.test_refusals import dry_run
from tests.support.apiserver import Running
from tests.support.edits import example
from tests.support.too_much import candidates, with_argument

from paceline.controller.settings import OperatorSettings, from_environment
from paceline.kube.throttle import BURST, QPS


def told(**values: Any) -> OperatorSettings:
    (deployment,) = of_kind(rendered(**values), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return from_environment(
        {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}
    )


def test_the_charts_limits_reach_the_operator_and_are_its_own_by_default() -> None:
    assert (told().qps, told().burst) == (QPS, BURST)
    limited = told(apiServer__qps=7.5, apiServer__burst=9)
    assert (limited.qps, limited.burst) == (7.5, 9)


def named(name: str) -> dict[str, Any]:
    manifest: dict[str, Any] = example()
    manifest["spec"]["candidates"][0]["name"] = name
    return manifest


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (candidates(10_000), "spec.candidates: Too many: 10000"),
        (with_argument("--x=" + "x" * (1 << 20)), "spec.engine.args[0]: Too long"),
        (named("<img src=x onerror=alert(1)>"), "spec.candidates[0].name"),
        (named("cafe\u0301"), "spec.candidates[0].name"),
        (named("\u202ewide"), "spec.candidates[0].name"),
        (named("wi\u200bde"), "spec.candidates[0].name"),
        (named("🚀"), "spec.candidates[0].name"),
        (named("wide\n"), "spec.candidates[0].name"),
    ],
    ids=["10,000 candidates", "1 MB", "HTML", "decomposed", "right to left", "zero width", "emoji", "a line"],
)
def test_what_is_beyond_a_limit_is_refused_by_the_api_server_in_few_words(
    apiserver: Running, manifest: dict[str, Any], says: str
) -> None:
    answer = dry_run(apiserver, manifest)
    assert answer.get("status") == "Failure"
    assert says in answer["message"]
    assert len(answer["message"]) < 4000
