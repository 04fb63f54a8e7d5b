"""Models that somebody has put on the volume: looked at, named, and left alone."""

from pathlib import Path

from tests.support.messages import Says

from paceline.fetching import FetchResult

from .conftest import HEAD, Hub, Pod

PLACE = "qwen/Qwen3-8B"
SOURCE = f"pvc://company-models/{PLACE}"


def put(pod: Pod, hub: Hub, repository: str, place: str = PLACE) -> Path:
    """What somebody has copied there."""
    folder = pod.volume / place
    folder.mkdir(parents=True)
    for name, file in hub.repositories[repository].history[0].files.items():
        (folder / name).write_bytes(file.content)
    return folder


async def test_what_is_there_is_named_and_nothing_is_asked(pod: Pod, hub: Hub) -> None:
    folder = put(pod, hub, "Qwen/Qwen3-8B")
    put(pod, hub, "thoughtworks/Qwen3-8B-Eagle3", "heads/Qwen3-8B-Eagle3")
    ended = await pod.fetch(sources=[SOURCE, "pvc://company-models/heads/Qwen3-8B-Eagle3"])
    assert ended.code == 0, ended.log
    assert hub.asked == []
    target, head = FetchResult.from_message(ended.message).models
    assert (target.source, target.path) == (SOURCE, str(folder))
    assert len(target.commit) == 40
    facts = FetchResult.from_message(ended.message).facts
    assert facts[target.source].architectures == ("Qwen3ForCausalLM",)
    assert facts[head.source].has_d2t is True


async def test_other_files_are_another_commit(pod: Pod, hub: Hub) -> None:
    folder = put(pod, hub, "Qwen/Qwen3-8B")
    before = await pod.fetch(sources=[SOURCE])
    again = await pod.fetch(sources=[SOURCE])
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("4096", "2048"))
    after = await pod.fetch(sources=[SOURCE])
    assert again.message == before.message
    then, now = (FetchResult.from_message(ended.message).models[0] for ended in (before, after))
    assert now.commit != then.commit


async def test_a_head_from_the_hub_for_a_target_that_is_there(pod: Pod, hub: Hub) -> None:
    put(pod, hub, "Qwen/Qwen3-Coder-Next")
    ended = await pod.fetch(sources=[SOURCE, f"hf://{HEAD}"])
    assert ended.code == 0, ended.log
    assert [model.commit for model in FetchResult.from_message(ended.message).models][1] == hub.commit(HEAD)


async def test_a_directory_that_is_not_there(pod: Pod, says: Says) -> None:
    ended = await pod.fetch(sources=[SOURCE])
    assert ended.code == 2
    says(ended.message)


async def test_a_directory_that_is_no_model(pod: Pod, hub: Hub, says: Says) -> None:
    folder = put(pod, hub, "Qwen/Qwen3-8B")
    (folder / "config.json").unlink()
    ended = await pod.fetch(sources=[SOURCE])
    assert ended.code == 2
    says(ended.message)


async def test_weights_that_were_cut_off(pod: Pod, hub: Hub, says: Says) -> None:
    folder = put(pod, hub, "Qwen/Qwen3-8B")
    (folder / "model.safetensors.index.json").unlink()
    (weights,) = folder.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    ended = await pod.fetch(sources=[SOURCE])
    assert ended.code == 2
    says(ended.message)
