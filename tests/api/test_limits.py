"""The operator's own limit on its requests, from the chart's values to the settings."""

from typing import Any

from tests.api.chart import of_kind, rendered

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
