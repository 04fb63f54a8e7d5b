"""What the CRDs' rules may cost, by the API server's own estimate: a CRD above its limits is refused, and a longer list
or string in a schema is enough for that."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import BINARIES, BUILD, Running

from paceline.api.crd import crds

MOST = 0.5
"""Of a limit: the rest is for rules to come, and for API servers that estimate otherwise."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    subprocess.run([BUILD, "cel-cost"], check=True, stdout=subprocess.DEVNULL)


def estimated(crd: dict[str, Any], directory: Path) -> list[dict[str, Any]]:
    """A line for each rule and messageExpression, and one for the total."""
    path = directory / "crd.yaml"
    path.write_text(json.dumps(crd))
    printed = subprocess.run([BINARIES / "cel-cost", path], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def named(crd: dict[str, Any]) -> str:
    name: str = crd["metadata"]["name"]
    return name


@pytest.mark.parametrize("crd", crds(), ids=named)
def test_no_rule_nor_all_of_them_may_cost_more_than_half_of_what_is_allowed(
    crd: dict[str, Any], tmp_path: Path
) -> None:
    lines = estimated(crd, tmp_path)
    text = json.dumps(crd)
    assert len(lines) == text.count('"rule": "') + text.count('"messageExpression": "') + 1
    assert [line for line in lines if line["cost"] > MOST * line["limit"]] == []


def longer(schema: Any, times: int) -> Any:
    if isinstance(schema, list):
        return [longer(one, times) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bounds = ("maxItems", "maxLength", "maxProperties")
    return {
        key: value * times if key in bounds and isinstance(value, int) else longer(value, times)
        for key, value in schema.items()
    }


GROWING = [crd for crd in crds() if crd["spec"]["names"]["kind"] != "BenchmarkRound"]
"""A round is compared as a whole, at the price of the largest request, whatever its bounds."""


@pytest.mark.parametrize("crd", GROWING, ids=named)
def test_the_estimate_is_that_of_the_api_server(apiserver: Running, crd: dict[str, Any], tmp_path: Path) -> None:
    """Which says by how much a limit is exceeded: up to 100 times, and with at least one digit after the point."""
    costly = longer(crd, 64 if named(crd).startswith("benchmarkprofiles.") else 8)  # whose rules cost next to nothing
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    refused = apiserver.request("POST", f"{kinds}?dryRun=All", costly)["message"]
    said = [float(factor) for factor in re.findall(r"exceeds budget by factor of ([0-9.]+)x", refused)]
    factors = [line["cost"] / line["limit"] for line in estimated(costly, tmp_path)]
    assert sorted(said) == pytest.approx(sorted(factor for factor in factors if 1 < factor <= 100), abs=0.051)
    assert said
