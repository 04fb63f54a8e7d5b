"""What a failed fetch says: one sentence that names the repository and the way out."""

import os
from pathlib import Path

import pytest

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
    ("names", "code", "sentence"),
    [
        (
            [TARGET, "no/body"],
            2,
            "hf://no/body: no such repository, or a private one; correct the source or give a token in "
            "spec.cache.tokenSecretRef",
        ),
        ([TARGET, f"{HEAD}@v9"], 2, f"hf://{HEAD}: no revision v9; name a branch, tag or commit it has"),
        ([f"{HEAD}@{'0' * 40}"], 2, f"hf://{HEAD}: no revision {'0' * 40}; name a branch, tag or commit it has"),
        (
            [TARGET, "paceline-test/gated-head"],
            2,
            "hf://paceline-test/gated-head: gated; accept its terms on the hub and give a token in "
            "spec.cache.tokenSecretRef",
        ),
        (
            ["only-a-name"],
            2,
            "hf://only-a-name: not a source that can be fetched; write hf://OWNER/NAME or pvc://CLAIM/PATH",
        ),
    ],
)
async def test_a_refusal_downloads_no_weights(pod: Pod, hub: Hub, names: list[str], code: int, sentence: str) -> None:
    ended = await pod.fetch(*names)
    assert (ended.code, ended.message) == (code, sentence)
    assert not [line for line in hub.downloads if "safetensors" in line]
    assert not list(pod.volume.glob("fetch/locks/*"))


@pytest.mark.parametrize(
    ("names", "source", "part"),
    [
        ([TARGET, "no/body"], "hf://no/body", "source"),
        ([TARGET, f"{HEAD}@v9"], f"hf://{HEAD}", "revision"),
        (["only-a-name"], "", "source"),
    ],
)
async def test_the_message_says_whose_field_is_to_be_changed(
    pod: Pod, names: list[str], source: str, part: str
) -> None:
    failure = (await pod.fetch(*names)).failure
    assert (failure.source, failure.part) == (source, part)


async def test_a_token_opens_what_is_gated(pod: Pod) -> None:
    ended = await pod.fetch("paceline-test/gated-head", environment={"HF_TOKEN": GATED_TOKEN})
    assert ended.code == 0, ended.log


async def test_pickled_weights_are_not_fetched(pod: Pod, hub: Hub) -> None:
    without(hub, HEAD, ".safetensors")
    ended = await pod.fetch(TARGET, HEAD)
    assert ended.code == 2
    assert ended.message.startswith(f"hf://{HEAD}: no safetensors in revision main; ")
    assert hub.downloads == []


async def test_a_repository_without_a_configuration_is_not_a_model(pod: Pod, hub: Hub) -> None:
    without(hub, HEAD, "config.json")
    ended = await pod.fetch(HEAD)
    assert (ended.code, ended.message) == (2, f"hf://{HEAD}: no config.json in revision main; not a model")


async def test_a_hub_that_cannot_be_reached_is_worth_another_try(pod: Pod) -> None:
    ended = await pod.fetch(TARGET, environment={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert ended.code == 1
    assert ended.message.startswith(f"hf://{TARGET}: http://127.0.0.1:1 cannot be reached (")
    assert ended.message.endswith("check HF_ENDPOINT and the proxies in spec.cache.env")


async def test_a_request_that_is_none(pod: Pod) -> None:
    ended = await pod.fetch(environment={"PACELINE_FETCH": "[]"})
    assert ended.code == 2
    assert ended.message.startswith("PACELINE_FETCH is not a request: ")


def test_a_volume_that_is_too_small_is_found_out_before_the_download(tmp_path: Path) -> None:
    artifact = Artifact(source=Source.parse(f"hf://{TARGET}"))
    pinned = client.Pinned(artifact=artifact, commit="0" * 40)
    listed = client.FileListing(pinned=pinned, files={"model.safetensors": 10**17})
    with pytest.raises(FetchError, match=r"too small: 100000000\.00 GB are to be fetched, .* enlarge the cache claim"):
        volume.check_free_space(tmp_path, [listed])


def test_a_disk_that_fills_up_on_the_way_is_named() -> None:
    artifact = Artifact(source=Source.parse(f"hf://{TARGET}"))
    full = f"hf://{TARGET}: the cache volume is full; enlarge"
    with pytest.raises(FetchError, match=full), client.explained(artifact):
        Path("/dev/full").write_text("x")


@pytest.mark.parametrize(
    "source",
    ["hf://a/../b", "hf://a/b/c", "pvc://claim/../path", "pvc://claim", "pvc://claim/a//b", "hf://a/", "hf://../b"],
)
def test_sources_are_names_and_nothing_else(source: str) -> None:
    with pytest.raises(FetchError, match="not a source that can be fetched"):
        read_request(f'{{"models": [{{"source": "{source}"}}]}}')


async def test_a_volume_that_cannot_be_used_is_named_and_worth_another_try(pod: Pod) -> None:
    (pod.volume / "fetch").write_text("a file where a directory should be")
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    assert ended.message.startswith(f"the cache volume {pod.volume} cannot be used: ")
    assert not (pod.volume / "hub").exists()


@pytest.mark.parametrize(
    ("closed", "says"),
    [(".", "the cache volume {volume} cannot be used: "), ("hub", "hf://{head}: cannot write to the cache volume (")],
    ids=["all of it", "where the models are"],
)
async def test_a_volume_of_somebody_elses_is_refused_with_who_we_are_and_the_field(
    pod: Pod, closed: str, says: str
) -> None:
    """Trying again helps nobody: exit 2, and the one field that does."""
    (pod.volume / closed).mkdir(exist_ok=True)
    (pod.volume / closed).chmod(0o555)
    pod.mere_user = True
    ended = await pod.fetch(HEAD)
    assert ended.code == 2, ended.log
    assert ended.message.startswith(says.format(volume=pod.volume, head=HEAD))
    assert "Permission denied" in ended.message
    assert ended.message.endswith(f"; {client.grant_access()}")
    assert f"uid {os.getuid()}" in ended.message
    assert "spec.cache.securityContext" in ended.message
