"""What a failed fetch says: one sentence that names the repository and the way out."""

import os
from pathlib import Path

import pytest
from tests.support.messages import Says

from paceline.core import Source
from paceline.fetching import Artifact
from paceline.pods.fetch import hub as client
from paceline.pods.fetch import volume
from paceline.pods.fetch.request import FetchError, read_request
from paceline_emulator.hub import Repository, snapshot
from paceline_emulator.hub.models import GATED_TOKEN

from .conftest import HEAD, TARGET, Hub, Pod


def without(hub: Hub, name: str, *removed: str) -> None:
    files = {path: file.content for path, file in hub.repositories[name].history[0].files.items()}
    kept = {path: content for path, content in files.items() if not path.endswith(removed)}
    hub.repositories[name] = Repository(history=(snapshot({**kept, "pytorch_model.bin": b"0"}),))


@pytest.mark.parametrize(
    ("names", "source", "part"),
    [
        ([TARGET, "no/body"], "hf://no/body", "source"),
        ([TARGET, f"{HEAD}@v9"], f"hf://{HEAD}", "revision"),
        ([f"{HEAD}@{'0' * 40}"], f"hf://{HEAD}", "revision"),
        ([TARGET, "paceline-test/gated-head"], "hf://paceline-test/gated-head", "source"),
        (["only-a-name"], "", "source"),
    ],
)
async def test_a_refusal_downloads_no_weights_and_says_whose_field_is_to_be_changed(
    pod: Pod, hub: Hub, names: list[str], source: str, part: str, says: Says
) -> None:
    ended = await pod.fetch(*names)
    assert (ended.code, ended.failure.source, ended.failure.part) == (2, source, part)
    assert not [line for line in hub.downloads if "safetensors" in line]
    assert not list(pod.volume.glob("fetch/locks/*"))
    says(ended.message)


async def test_a_token_opens_what_is_gated(pod: Pod) -> None:
    ended = await pod.fetch("paceline-test/gated-head", environment={"HF_TOKEN": GATED_TOKEN})
    assert ended.code == 0, ended.log


async def test_pickled_weights_are_not_fetched(pod: Pod, hub: Hub, says: Says) -> None:
    without(hub, HEAD, ".safetensors")
    ended = await pod.fetch(TARGET, HEAD)
    assert ended.code == 2
    says(ended.message)
    assert hub.downloads == []


async def test_a_repository_without_a_configuration_is_not_a_model(pod: Pod, hub: Hub, says: Says) -> None:
    without(hub, HEAD, "config.json")
    ended = await pod.fetch(HEAD)
    assert ended.code == 2
    says(ended.message)


async def test_a_hub_that_cannot_be_reached_is_worth_another_try(pod: Pod) -> None:
    ended = await pod.fetch(TARGET, environment={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert ended.code == 1
    assert ended.message.startswith(f"hf://{TARGET}: http://127.0.0.1:1 ")
    assert ended.message.endswith(" spec.cache.env")


async def test_a_request_that_is_none(pod: Pod) -> None:
    ended = await pod.fetch(environment={"PACELINE_FETCH": "[]"})
    assert ended.code == 2
    assert ended.message.startswith("PACELINE_FETCH ")


def test_a_volume_that_is_too_small_is_found_out_before_the_download(tmp_path: Path) -> None:
    artifact = Artifact(source=Source.parse(f"hf://{TARGET}"))
    pinned = client.Pinned(artifact=artifact, commit="0" * 40)
    listed = client.FileListing(pinned=pinned, files={"model.safetensors": 10**17})
    with pytest.raises(FetchError, match=r" 100000000\.00 GB "):
        volume.check_free_space(tmp_path, [listed])


def test_a_disk_that_fills_up_on_the_way_is_named(says: Says) -> None:
    artifact = Artifact(source=Source.parse(f"hf://{TARGET}"))
    with pytest.raises(FetchError) as full, client.explained(artifact):
        Path("/dev/full").write_text("x")
    says(full.value)


@pytest.mark.parametrize(
    "source",
    ["hf://a/../b", "hf://a/b/c", "pvc://claim/../path", "pvc://claim", "pvc://claim/a//b", "hf://a/", "hf://../b"],
)
def test_sources_are_names_and_nothing_else(source: str) -> None:
    with pytest.raises(FetchError, match=source):
        read_request(f'{{"models": [{{"source": "{source}"}}]}}')


async def test_a_volume_that_cannot_be_used_is_named_and_worth_another_try(pod: Pod) -> None:
    (pod.volume / "fetch").write_text("a file where a directory should be")
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    assert f" {pod.volume} " in ended.message
    assert not (pod.volume / "hub").exists()


@pytest.mark.parametrize(
    ("closed", "begins"),
    [(".", "the cache volume {volume} "), ("hub", "hf://{head}: ")],
    ids=["all of it", "where the models are"],
)
async def test_a_volume_of_somebody_elses_is_refused_with_who_we_are_and_the_field(
    pod: Pod, closed: str, begins: str
) -> None:
    """Trying again helps nobody: exit 2, and the one field that does."""
    (pod.volume / closed).mkdir(exist_ok=True)
    (pod.volume / closed).chmod(0o555)
    pod.mere_user = True
    ended = await pod.fetch(HEAD)
    assert ended.code == 2, ended.log
    assert ended.message.startswith(begins.format(volume=pod.volume, head=HEAD))
    assert "Permission denied" in ended.message
    assert ended.message.endswith(f"; {client.grant_access()}")
    assert f"uid {os.getuid()}" in ended.message
    assert "spec.cache.securityContext" in ended.message
