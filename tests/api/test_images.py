"""Models of images on real API servers: with the feature gate ImageVolume, and as a release comes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.apiserver import Running, start

from paceline import api
from paceline.core import DeploymentSpec
from paceline.core.manifest import Manifest
from paceline.kube import needs_apply, stamped
from paceline.plan.deployment.models import pin
from paceline.render import Owner, Settings, rendering, revision_of, servers

EXAMPLE = Path(__file__).parents[2] / "examples" / "qwen3-8b-oci.yaml"
OWNER = Owner(kind="SpeculativeDeployment", name="qwen3-8b-oci", namespace="default", uid="1")


def spec() -> DeploymentSpec:
    """At the digests that it names: nothing has to be resolved."""
    return pin(api.deployment(yaml.safe_load(EXAMPLE.read_text())), {})


def served(asked: DeploymentSpec) -> Manifest:
    first = asked.pools[0]
    server, arm = replace(asked.server, max_concurrency=16), first.arms[1]
    kept = rendering(OWNER, first.name, server, arm, revision_of(server, arm), Settings(image="paceline"))
    return stamped(servers(OWNER, first.name, kept, 1, asked.promotion.progress_deadline, {}, True))


def applied(apiserver: Running, manifest: Manifest) -> Manifest:
    strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json", "-f", "-")
    stored: Manifest = json.loads(apiserver.kubectl("apply", *strictly, given=manifest).stdout)
    return stored


@pytest.fixture(scope="module")
def with_image_volumes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("images"), options=["--feature-gates=ImageVolume=true"])
    yield running
    running.stop()


def test_an_image_is_a_volume_and_needs_no_second_apply(with_image_volumes: Running) -> None:
    wanted = served(spec())
    stored = applied(with_image_volumes, wanted)
    images = [one["image"] for one in stored["spec"]["template"]["spec"]["volumes"] if "image" in one]
    assert [one["reference"].partition("@")[0] for one in images] == [
        "registry.example.com/models/qwen3-8b",
        "registry.example.com/models/qwen3-8b-eagle3",
    ]
    assert not needs_apply(stored, wanted)


def test_without_the_gate_volume_and_mount_are_left_out_without_a_word(apiserver: Running) -> None:
    """What the planner then looks for; the gate is on from 1.35. To apply it again changes nothing: it wakes nobody."""
    on = int(apiserver.request("GET", "/version")["minor"]) >= 35
    wanted = served(spec())
    stored = applied(apiserver, wanted)
    pod = stored["spec"]["template"]["spec"]
    for kept in (pod["volumes"], pod["containers"][0]["volumeMounts"]):
        assert any(one["name"].startswith("image-") for one in kept) is on
    assert applied(apiserver, wanted)["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
