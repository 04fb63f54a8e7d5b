"""What the installation gives containers, and what the user's word is against it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.containers import container
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, run, server

from paceline.core import Model
from paceline.core.manifest import Manifest
from paceline.render import fetch_job, revision_of, round_job
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE

SAFE = {"allowPrivilegeEscalation": False}
INSTALLED = replace(
    SETTINGS,
    image_pull_secrets=("registry",),
    resources={
        "server": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"ephemeral-storage": "8Gi"}},
        "client": {"requests": {"cpu": "50m"}, "limits": {"memory": "4Gi"}},
        "fetch": {"requests": {"memory": "256Mi"}, "limits": {"memory": "4Gi"}},
    },
    server_security=SAFE,
    server_pod_security={"seccompProfile": {"type": "RuntimeDefault"}},
)
GPUS = {"nvidia.com/gpu": "4"}


def served(**container: Any) -> Manifest:
    """The pod of a server of whose container the user says this."""
    over = {"spec": {"containers": [{"name": "server", **container}]}} if container else {}
    asked = replace(server(), engine=replace(server().engine, pod_template=over))
    return template(DEPLOYED, "latency", asked, arm("wide"), revision_of(asked, arm("wide")), INSTALLED)["spec"]


def measured() -> Manifest:
    asked = round_plan(RUN, run(), run().arms, 0, 0)
    return round_job(RUN, run(), asked, ANYWHERE, INSTALLED)["spec"]["template"]["spec"]


def fetched() -> Manifest:
    models = (Model(source="hf://a/b", revision="main"),)
    return fetch_job(DEPLOYED, server(), models, INSTALLED)["spec"]["template"]["spec"]


def of(pod: Manifest, name: str) -> Manifest:
    return container({"spec": pod}, name)


def test_no_container_that_we_make_is_without_requests() -> None:
    """A busy node starves those first, and a quota refuses them."""
    for pod in (served(), measured(), fetched()):
        assert all("requests" in one["resources"] for one in (*pod.get("initContainers", ()), *pod["containers"]))
    for pod, name in ((measured(), "client"), (fetched(), "fetch")):
        assert of(pod, name)["resources"]["limits"] == {"memory": "4Gi"}


def test_a_server_is_measured_with_the_resources_and_rights_that_it_is_served_with() -> None:
    for part in ("resources", "securityContext"):
        assert of(measured(), "server")[part] == of(served(), "server")[part]
    assert of(served(), "server")["resources"] == {
        "limits": {"ephemeral-storage": "8Gi", **GPUS},
        "requests": {"cpu": "50m", "memory": "256Mi"},
    }
    assert served()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert measured()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize(
    ("said", "resources"),
    [
        (
            {"requests": {"memory": "64Gi"}},
            {"limits": {"ephemeral-storage": "8Gi", **GPUS}, "requests": {"cpu": "50m", "memory": "64Gi"}},
        ),
        # Kubernetes makes requests of limits: with ours beside them it would not.
        (
            {"limits": {"cpu": "8", "memory": "64Gi"}},
            {"limits": {"ephemeral-storage": "8Gi", "cpu": "8", "memory": "64Gi", **GPUS}},
        ),
        # Ours would be below what is asked for, and the pod be refused.
        (
            {"requests": {"ephemeral-storage": "9Gi"}},
            {"limits": GPUS, "requests": {"cpu": "50m", "memory": "256Mi", "ephemeral-storage": "9Gi"}},
        ),
    ],
    ids=["another request", "limits alone", "more than our limit"],
)
def test_of_a_resource_that_the_user_names_all_is_the_users(said: Manifest, resources: Manifest) -> None:
    assert of(served(resources=said), "server")["resources"] == resources


@pytest.mark.parametrize(
    ("said", "context"),
    [
        ({"runAsUser": 1000}, {**SAFE, "runAsUser": 1000}),
        ({"capabilities": {"add": ["IPC_LOCK"]}}, {**SAFE, "capabilities": {"add": ["IPC_LOCK"]}}),
        ({"privileged": True}, {"privileged": True}),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, {"capabilities": {"add": ["SYS_ADMIN"]}}),
        ({"allowPrivilegeEscalation": True}, {"allowPrivilegeEscalation": True}),
    ],
    ids=["a user", "a right", "all rights", "as good as all", "as is said"],
)
def test_what_has_all_rights_is_not_kept_from_gaining_some(said: Manifest, context: Manifest) -> None:
    """Kubernetes refuses a pod that says both."""
    assert of(served(securityContext=said), "server")["securityContext"] == context


def test_our_image_is_pulled_with_the_installations_secrets() -> None:
    assert measured()["imagePullSecrets"] == fetched()["imagePullSecrets"] == [{"name": "registry"}]
    assert "imagePullSecrets" not in served(), "that image is the user's"
