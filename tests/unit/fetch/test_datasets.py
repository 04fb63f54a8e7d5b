"""A dataset's file comes onto the volume beside the models, through the hub's own client."""

from pathlib import Path

import pytest
from aiohttp import web
from tests.support.messages import Says

from paceline.core import Source
from paceline.core.names import snapshot_path
from paceline.fetching import FetchedModel, FetchResult
from paceline.pods.fetch.request import FetchError, read_request
from paceline.pods.prompt_file import read_prompts
from paceline_emulator.hub import Repository, snapshot

from .conftest import HEAD, TARGET, Ended, Handler, Hub, Pod

NAME = "paceline-test/prompts"
REPOSITORY = f"datasets/{NAME}"
MESSAGES, SHAREGPT = f"hf://{REPOSITORY}/code.jsonl", f"hf://{REPOSITORY}/data/chat.json"
PROMPT = b'{"messages": [{"role": "user", "content": "Say %d."}]}\n'


def only(ended: Ended) -> FetchedModel:
    assert ended.code == 0, ended.log
    (dataset,) = FetchResult.from_message(ended.message).datasets
    return dataset


def asks(source: str = MESSAGES, **said: str) -> list[dict[str, str]]:
    return [{"source": source, **said}]


def with_history(hub: Hub, count: int) -> list[str]:
    """Give the dataset `count` commits of a prompt each. Oldest first."""
    history = tuple(snapshot({"code.jsonl": PROMPT % number}) for number in range(count))
    hub.repositories[REPOSITORY] = Repository(history=history)
    return [one.commit for one in history]


def snapshots(pod: Pod) -> set[str]:
    return {path.name for path in (pod.volume / "hub" / "datasets--paceline-test--prompts" / "snapshots").iterdir()}


def content_of(dataset: FetchedModel) -> bytes:
    return Path(dataset.path).read_bytes()


def remove(dataset: FetchedModel) -> None:
    Path(dataset.path).unlink()


def served(hub: Hub, path: str) -> bytes:
    return hub.repositories[REPOSITORY].history[-1].files[path].content


async def test_prompts_arrive_beside_the_models_pinned_and_by_themselves(pod: Pod, hub: Hub) -> None:
    ended = await pod.fetch(TARGET, HEAD, datasets=[*asks(MESSAGES), *asks(SHAREGPT)])
    assert ended.code == 0, ended.log
    fetched = FetchResult.from_message(ended.message)
    assert [model.source for model in fetched.models] == [f"hf://{TARGET}", f"hf://{HEAD}"]
    for dataset, path in zip(fetched.datasets, ("code.jsonl", "data/chat.json"), strict=True):
        content = served(hub, path)
        assert (dataset.source, dataset.revision) == (f"hf://{REPOSITORY}/{path}", "main")
        assert (dataset.commit, dataset.bytes) == (hub.commit(REPOSITORY), len(content))
        assert dataset.path == snapshot_path(dataset.source, dataset.commit).replace("/models", str(pod.volume), 1)
        assert content_of(dataset) == content
        assert read_prompts(Path(dataset.path), Source.parse(dataset.source)).usable in (48, 24)
    assert not list((pod.volume / "hub").rglob("datasets--*/**/README.md"))


async def test_a_second_fetch_downloads_nothing(pod: Pod, hub: Hub) -> None:
    first = await pod.fetch(HEAD, datasets=asks())
    hub.asked.clear()
    second = await pod.fetch(HEAD, datasets=asks())
    assert second.message == first.message
    assert hub.asked == [f"GET /api/models/{HEAD}/revision/main", f"GET /api/{REPOSITORY}/revision/main"]


async def test_a_file_that_has_gone_from_the_volume_is_brought_again(pod: Pod, hub: Hub) -> None:
    first = only(await pod.fetch(HEAD, datasets=asks()))
    remove(first)
    assert only(await pod.fetch(HEAD, datasets=asks())) == first
    assert content_of(first) == served(hub, "code.jsonl")


async def test_what_was_resolved_before_is_not_asked_again(pod: Pod, hub: Hub) -> None:
    """A branch that has moved since moves nothing."""
    old, new = with_history(hub, 2)
    dataset = only(await pod.fetch(HEAD, datasets=asks(commit=old)))
    assert (dataset.revision, dataset.commit) == ("main", old)
    assert content_of(dataset) == PROMPT % 0
    assert not [line for line in hub.asked if line.endswith("revision/main") and REPOSITORY in line]
    assert only(await pod.fetch(HEAD, datasets=asks())).commit == new


async def test_old_revisions_go_beyond_those_to_keep(pod: Pod, hub: Hub) -> None:
    first, second, third = with_history(hub, 3)
    for commit in (first, second, third):
        assert only(await pod.fetch(HEAD, datasets=asks(revision=commit), keepRevisions=2)).commit == commit
    assert snapshots(pod) == {second, third}
    for commit in (first, third):
        assert (await pod.fetch(HEAD, datasets=asks(revision=commit), keepRevisions=1, inUse=[second])).code == 0
    assert snapshots(pod) == {second, third}


async def test_a_model_of_the_same_name_is_another_repository(pod: Pod, hub: Hub) -> None:
    files = {path: file.content for path, file in hub.repositories[HEAD].history[0].files.items()}
    history = tuple(snapshot({**files, "number.txt": b"%d" % number}) for number in range(2))
    hub.repositories[NAME] = Repository(history=history)
    for one in history:
        assert (await pod.fetch(f"{NAME}@{one.commit}", keepRevisions=2)).code == 0
    assert (await pod.fetch(HEAD, datasets=asks(), keepRevisions=1)).code == 0
    assert len(list(pod.volume.glob("hub/models--paceline-test--prompts/snapshots/*"))) == 2


async def test_another_users_prompts_stay(pod: Pod, hub: Hub) -> None:
    first, second = with_history(hub, 2)
    await pod.fetch(HEAD, datasets=asks(revision=first), keepRevisions=1, user="team/a")
    await pod.fetch(HEAD, datasets=asks(revision=second), keepRevisions=1, user="team/b")
    assert snapshots(pod) == {first, second}


@pytest.mark.parametrize(
    ("source", "revision"),
    [
        ("hf://datasets/no/body/a.json", "main"),
        (f"hf://{REPOSITORY}/chat.json", "main"),
        (f"hf://{REPOSITORY}/data", "main"),
        (MESSAGES, "v9"),
        (MESSAGES, "0" * 40),
        ("hf://datasets/paceline-test/gated/code.jsonl", "main"),
    ],
)
async def test_a_refusal_downloads_no_weights(pod: Pod, hub: Hub, source: str, revision: str, says: Says) -> None:
    hub.repositories["datasets/paceline-test/gated"] = Repository(
        history=hub.repositories[REPOSITORY].history, token="hf_opens_it"
    )
    ended = await pod.fetch(TARGET, datasets=asks(source, revision=revision))
    assert ended.code == 2
    assert ended.message.startswith(f"{source}: ")
    says(ended.message)
    assert not [line for line in hub.downloads if "safetensors" in line]
    assert not list(pod.volume.glob("fetch/sets/*"))


async def test_a_commit_that_was_resolved_and_has_gone_is_named(pod: Pod) -> None:
    ended = await pod.fetch(TARGET, datasets=asks(commit="0" * 40))
    assert ended.code == 2
    assert ended.message.startswith(f"{MESSAGES}: no revision main ({'0' * 40})")


async def test_a_token_opens_what_is_gated(pod: Pod, hub: Hub) -> None:
    hub.repositories[REPOSITORY] = Repository(history=hub.repositories[REPOSITORY].history, token="hf_opens_it")
    assert only(await pod.fetch(HEAD, datasets=asks(), environment={"HF_TOKEN": "hf_opens_it"})).source == MESSAGES


@pytest.mark.parametrize(
    "content",
    [
        b'[{"conversations": [{"from": "human", "value": "a"}, {"from": "observation", "value": "b"}]}]',
        b'{"messages": [{"role": "system", "content": "a"}]}',
        b'{"question": "a"}',
        b"PAR1",
    ],
)
async def test_prompts_that_no_round_could_send_are_refused_before_weights(
    pod: Pod, hub: Hub, content: bytes, says: Says
) -> None:
    hub.repositories[REPOSITORY] = Repository(history=(snapshot({"code.jsonl": content}),))
    ended = await pod.fetch(TARGET, datasets=asks())
    assert ended.code == 2
    assert ended.message.startswith(f"{MESSAGES}: ")
    says(ended.message)
    assert not [line for line in hub.downloads if "safetensors" in line]


async def test_a_hub_that_cannot_be_reached_is_worth_another_try(pod: Pod, hub: Hub) -> None:
    pinned = f"{HEAD}@{hub.commit(HEAD)}"
    ended = await pod.fetch(pinned, datasets=asks(), environment={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert ended.code == 1
    assert ended.message.startswith(f"{MESSAGES}: http://127.0.0.1:1 ")


async def test_models_without_their_prompts_are_no_set(pod: Pod, hub: Hub) -> None:
    async def break_dataset(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "GET" and request.path.startswith(f"/{REPOSITORY}/resolve"):
            raise web.HTTPInternalServerError
        return await handler(request)

    hub.answer = break_dataset
    ended = await pod.fetch(HEAD, datasets=asks())
    assert (ended.code, ended.message) == (1, f"{MESSAGES}: http://127.0.0.1:{hub.port} answered 500")
    assert not list(pod.volume.glob("fetch/sets/*"))


async def test_a_file_too_large_to_be_read_is_not_downloaded(pod: Pod, hub: Hub, says: Says) -> None:
    async def swollen(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/paths-info/" in request.path:
            return web.json_response([{"type": "file", "oid": "0" * 40, "size": 1 << 30, "path": "code.jsonl"}])
        return await handler(request)

    hub.answer = swollen
    ended = await pod.fetch(HEAD, datasets=asks())
    assert ended.code == 2
    says(ended.message)
    assert hub.downloads == []


@pytest.mark.parametrize("source", ["hf://datasets/a/b", "hf://datasets/a/b/../c", "hf://a/b", "pvc://claim/a.json"])
def test_sources_are_files_of_datasets_and_nothing_else(source: str) -> None:
    with pytest.raises(FetchError, match=source):
        read_request(f'{{"models": [], "datasets": [{{"source": "{source}"}}]}}')
