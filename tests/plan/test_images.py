"""User stories of models that are images (as test_stories)."""

from copy import deepcopy
from typing import Any

from tests.support.containers import container
from tests.support.stories import told
from tests.support.world import World, example

from paceline.core.names import image_path

TARGET = f"oci://registry.example.com/models/qwen@sha256:{'1' * 64}/models"
HEAD = f"oci://registry.example.com/models/head@sha256:{'2' * 64}"
MOUNTED = [image_path(one.removeprefix("oci://").removesuffix("/models")) for one in (TARGET, HEAD)]


def of_images(**sources: str) -> dict[str, Any]:
    manifest = example("latency")
    for field, source in sources.items():
        manifest["spec"][field]["source"] = source
    return manifest


def mounted(pod: dict[str, Any], name: str) -> list[str]:
    return [one["mountPath"] for one in container(pod, name)["volumeMounts"] if one["name"].startswith("image-")]


@told
def test_target_and_head_are_images(world: World) -> None:
    """No prefetch: the kubelet pulls them. A server has those that its arm names, a round's client none."""
    world.apply(of_images(target=TARGET, draft=HEAD))
    assert world.cluster.of("Job", component="fetch") == []
    world.servers_ready()
    (server,), (round_,) = (world.cluster.of("Pod", component=component) for component in ("server", "round"))
    assert (mounted(server, "server"), mounted(round_, "server"), mounted(round_, "client")) == (
        MOUNTED[:1],
        MOUNTED,
        [],
    )
    assert f"{MOUNTED[0]}/models" in server["spec"]["containers"][0]["command"]
    assert "an image's files are not read" in world.status()["notes"][0]

    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert world.condition("Promoted") == "True AllPromoted"
    (server,) = world.cluster.of("Pod", component="server")
    assert mounted(server, "server") == MOUNTED


@told
def test_another_digest_is_another_question(world: World) -> None:
    world.apply(of_images(target=TARGET, draft=HEAD))
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    other = f"{HEAD.partition('@')[0]}@sha256:{'3' * 64}"
    world.edit("another head", lambda spec: spec["draft"].update(source=other))
    assert world.condition("Decided") == "False Undecided"
    world.servers_ready()
    assert len(world.runs("latency")) == 2


@told
def test_a_head_of_the_hub_for_a_target_of_an_image(world: World) -> None:
    """The prefetch brings what is on the hub, and that alone."""
    world.apply(of_images(target=TARGET))
    (job,) = world.cluster.of("Job", component="fetch")
    (variable,) = [one for one in _env(job) if one["name"] == "PACELINE_FETCH"]
    assert "oci://" not in variable["value"]
    world.prefetch_ends()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Measuring")) == ("True Serving", "True Measuring")


@told
def test_an_api_server_drops_volumes_of_images(world: World) -> None:
    """As 1.34 does without the feature gate: nothing is refused, and the servers would look for models in vain."""
    apply, dropping = world.cluster.apply, [True]

    def without_images(manifest: dict[str, Any]) -> bool:
        if manifest["kind"] != "Deployment" or not dropping:
            return apply(manifest)
        cut = deepcopy(manifest)
        pod = cut["spec"]["template"]["spec"]
        pod["volumes"] = [one for one in pod["volumes"] if "image" not in one]
        mounts = pod["containers"][0]["volumeMounts"]
        pod["containers"][0]["volumeMounts"] = [one for one in mounts if not one["name"].startswith("image-")]
        return apply(cut)

    world.cluster.apply = without_images  # type: ignore[method-assign, assignment]
    world.apply(of_images(target=TARGET, draft=HEAD))
    world.wait(1)
    assert world.condition("Stalled") == "True NoImageVolumes"
    assert "ImageVolume" in world.message("Stalled")

    dropping.clear()
    world.wait(1)
    world.servers_ready()
    assert (world.condition("Stalled"), world.condition("Ready")) == ("", "True Serving")


def _env(job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job["spec"]["template"]["spec"]["containers"][0]["env"]
    return found
