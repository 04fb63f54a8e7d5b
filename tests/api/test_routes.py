"""What leads requests to pools, against the schemas of the Gateway API and its Inference Extension on a real API
server; and docs/pods.md, whose resource is taken and becomes these objects."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.apiserver import Running
from tests.support.schemas import HTTP_ROUTE, INFERENCE_POOL

from paceline import api
from paceline.cli.render import rendered_objects
from paceline.kube import difference, needs_apply, stamped

ROOT = Path(__file__).parents[2]
NAMESPACE = "routed"
ROUTED = yaml.safe_load((ROOT / "examples" / "qwen3-coder-next.yaml").read_text())
(SNIPPET,) = re.findall(r"(?s)```yaml\n(.*?)```", (ROOT / "docs" / "pods.md").read_text())
ROUTED["metadata"]["namespace"] = NAMESPACE
ROUTED["spec"]["gateway"] = yaml.safe_load(SNIPPET)["gateway"]
for _pool, _more in zip(ROUTED["spec"]["pools"], yaml.safe_load(SNIPPET)["pools"], strict=True):
    _pool |= _more


@pytest.fixture(scope="module")
def installed(apiserver: Running) -> Iterator[Running]:
    for schema in (HTTP_ROUTE, INFERENCE_POOL):
        apiserver.install(schema.path())
    apiserver.kubectl("create", "namespace", NAMESPACE)
    yield apiserver
    for schema in (HTTP_ROUTE, INFERENCE_POOL):
        apiserver.kubectl("delete", "-f", str(schema.path()))


def applied(apiserver: Running, manifest: dict[str, Any]) -> dict[str, Any]:
    """What is stored; refused where a field is unknown, as the operator asks for it."""
    strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json")
    stored: dict[str, Any] = json.loads(apiserver.kubectl("apply", *strictly, "-f", "-", given=manifest).stdout)
    return stored


def test_the_resource_of_the_document_is_taken(apiserver: Running) -> None:
    assert api.deployment(ROUTED).gateway
    strictly = ("--dry-run=server", "--validate=strict", "--namespace", "default", "-f", "-")
    given = {**ROUTED, "metadata": {"name": "routed"}}
    assert "created" in apiserver.kubectl("apply", *strictly, given=given).stdout


def test_two_pools_of_one_header_value_are_refused(apiserver: Running) -> None:
    twins = [{**pool, "headerValue": "fast"} for pool in ROUTED["spec"]["pools"]]
    given = {**ROUTED, "metadata": {"name": "twins"}, "spec": {**ROUTED["spec"], "pools": twins}}
    with pytest.raises(RuntimeError, match="headerValue must lead to only one pool"):
        apiserver.kubectl("apply", "--dry-run=server", "--namespace", "default", "-f", "-", given=given)


def test_what_is_made_of_it_is_stored_and_needs_no_second_apply(installed: Running) -> None:
    """The defaults that the schemas fill in are no change of ours."""
    made = [one for one in rendered_objects(ROUTED) if one["kind"] in ("HTTPRoute", "InferencePool")]
    assert [one["kind"] for one in made] == ["InferencePool", "HTTPRoute", "HTTPRoute"]
    for one in made:
        wanted = stamped(one)
        stored = applied(installed, wanted)
        assert difference(stored, wanted) is None
        assert not needs_apply(stored, wanted)


def test_their_schemas_are_strict(installed: Running) -> None:
    """So that what is taken above says something."""
    for one in rendered_objects(ROUTED):
        if one["kind"] in ("HTTPRoute", "InferencePool"):
            one["spec"]["unknown"] = 1
            with pytest.raises(RuntimeError, match="unknown"):
                applied(installed, one)
