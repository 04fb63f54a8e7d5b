"""What serves over several nodes, against LeaderWorkerSet's own schema on a real API server. Its controller is not
there: nothing comes of these objects."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.apiserver import Running
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, pool, run
from tests.support.pod_templates import OVERLAY, with_overlay
from tests.support.several_nodes import over

from paceline.core.manifest import Manifest
from paceline.kube import difference, needs_apply, stamped
from paceline.render import rendering, round_job, servers, service
from paceline.render.round_job import round_plan
from paceline.render.where import Where

CRD = Path(__file__).parents[2] / "dev" / "cluster" / "manifests" / "leaderworkersets.yaml"
NAMESPACE = "several-nodes"


@pytest.fixture(scope="module")
def installed(apiserver: Running) -> Iterator[Running]:
    apiserver.install(CRD)
    apiserver.kubectl("create", "namespace", NAMESPACE)
    yield apiserver
    apiserver.kubectl("delete", "-f", str(CRD))


def served(nodes: int, overlay: Mapping[str, Any], replicas: int | None = 1) -> Manifest:
    kept = rendering(DEPLOYED, "latency", over(nodes, **overlay), arm("wide"), "0123456789", SETTINGS)
    made = servers(
        DEPLOYED, "latency", kept, replicas, timedelta(minutes=30), {"paceline.dev/why": "it was shown"}, True
    )
    made["metadata"]["namespace"] = NAMESPACE
    return made


def applied(apiserver: Running, manifest: Manifest, *flags: str) -> Manifest:
    """What is stored; refused where a field is unknown, as the operator asks for it."""
    strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json")
    stored: Manifest = json.loads(apiserver.kubectl("apply", *strictly, *flags, "-f", "-", given=manifest).stdout)
    return stored


@pytest.mark.parametrize("overlay", [{}, OVERLAY], ids=["plain", "podTemplate"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_is_rendered_is_taken_and_needs_no_second_apply(
    installed: Running, nodes: int, overlay: Mapping[str, Any]
) -> None:
    """The defaults that the schema fills in are no change of ours."""
    wanted = stamped(served(nodes, overlay))
    stored = applied(installed, wanted)
    assert stored["kind"] == ("LeaderWorkerSet" if nodes == 2 else "Deployment")
    assert difference(stored, wanted) is None
    assert not needs_apply(stored, wanted)


def test_the_number_of_servers_that_is_left_to_an_autoscaler_is_not_reset(installed: Running) -> None:
    """As execute does it: another manager takes the field over before it is dropped."""
    applied(installed, stamped(served(2, {}, replicas=3)))
    kept = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": {"replicas": 3}}
    named = {"name": "qwen3-coder-next-latency", "namespace": NAMESPACE}
    installed.kubectl(
        "apply", "--server-side", "--field-manager=paceline-replicas", "-f", "-", given={**kept, "metadata": named}
    )
    assert applied(installed, stamped(served(2, {}, replicas=None)))["spec"]["replicas"] == 3


def test_the_address_is_taken(installed: Running) -> None:
    wanted = service(DEPLOYED, "latency", nodes=2)
    wanted["metadata"]["namespace"] = NAMESPACE
    assert applied(installed, stamped(wanted))["spec"]["selector"] == wanted["spec"]["selector"]


def test_a_round_with_an_overlay_is_taken(installed: Running) -> None:
    asked = round_plan(RUN, run(), pool().spec.arms, number=0, try_=0)
    wanted = round_job(
        RUN,
        replace(run(), server=with_overlay(OVERLAY)),
        asked,
        Where(node="gpu-2", avoid=("gpu-0", "gpu-1")),
        SETTINGS,
    )
    wanted["metadata"]["namespace"] = NAMESPACE
    stored = applied(installed, stamped(wanted), "--dry-run=server")
    assert difference(stored, stamped(wanted)) is None


def test_its_schema_is_strict(installed: Running) -> None:
    """So that what is taken above says something."""
    wrong = served(2, {})
    wrong["spec"]["leaderWorkerTemplate"]["workers"] = 1
    with pytest.raises(RuntimeError, match="workers"):
        applied(installed, wrong)
