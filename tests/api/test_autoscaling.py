"""The example for KEDA, against KEDA's own schema on a real API server."""

import re
from pathlib import Path

import pytest
import yaml
from tests.support.apiserver import Running
from tests.support.rendered import EXAMPLES
from tests.support.schemas import SCALED_OBJECT

from paceline.api import deployment
from paceline.core.names import child_name

KEDA = EXAMPLES / "autoscaling" / "keda.yaml"


@pytest.fixture(scope="module")
def keda(apiserver: Running) -> Running:
    apiserver.install(SCALED_OBJECT.path())
    return apiserver


def test_the_example_for_keda_is_taken(keda: Running) -> None:
    assert "created" in applied(keda, KEDA)


def test_its_schema_is_strict(keda: Running, tmp_path: Path) -> None:
    """So that what is taken above says something."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(KEDA.read_text().replace("scaleTargetRef", "scaleTarget"))
    with pytest.raises(RuntimeError, match="scaleTarget"):
        applied(keda, wrong)


def applied(apiserver: Running, path: Path) -> str:
    arguments = ("--dry-run=server", "--validate=strict", "--namespace", "default", "-f", str(path))
    return apiserver.kubectl("apply", *arguments).stdout


def test_its_target_and_its_metric_are_those_of_a_pool() -> None:
    (scaled,) = yaml.safe_load_all(KEDA.read_text())
    spec = deployment(yaml.safe_load((EXAMPLES / "qwen3-coder-next.yaml").read_text()))
    servers = [child_name("qwen3-coder-next", pool.name) for pool in spec.pools]
    target, query = scaled["spec"]["scaleTargetRef"]["name"], scaled["spec"]["triggers"][0]["metadata"]["query"]
    assert target in servers
    assert re.findall(r'pod=~"(.*?)-\.\*"', query) == [target]
