"""A deployment's models come onto the volume, both or neither."""

import asyncio
import signal
from pathlib import Path

from aiohttp import web

from paceline.core.names import snapshot_path
from paceline.fetching import FetchResult
from paceline_emulator.hub import Repository, snapshot
from paceline_emulator.hub.weights import noise, safetensors

from .conftest import HEAD, TARGET, Handler, Hub, Pod

MEBIBYTE = 1 << 20


def with_history(hub: Hub, name: str, count: int) -> list[str]:
    """Give the repository `count` commits; they differ in config.json alone. Oldest first."""
    files = {path: file.content for path, file in hub.repositories[name].history[0].files.items()}
    history = tuple(snapshot({**files, "config.json": b'{"number": %d}' % n}) for n in range(count))
    hub.repositories[name] = Repository(history=history)
    return [one.commit for one in history]


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def snapshots(pod: Pod, name: str) -> set[str]:
    folder = pod.volume / "hub" / f"models--{name.replace('/', '--')}" / "snapshots"
    return {path.name for path in folder.iterdir()}


async def test_target_and_head_arrive_pinned_with_their_facts(pod: Pod, hub: Hub) -> None:
    ended = await pod.fetch(TARGET, HEAD)
    assert ended.code == 0, ended.log
    fetched = FetchResult.from_message(ended.message)
    for model, name in zip(fetched.models, (TARGET, HEAD), strict=True):
        assert (model.source, model.revision, model.commit) == (f"hf://{name}", "main", hub.commit(name))
        assert model.path == snapshot_path(model.source, model.commit).replace("/models", str(pod.volume), 1)
        files = contents(model.path)
        wanted = hub.repositories[name].history[0].files
        assert files == {path: file.content for path, file in wanted.items() if path != "README.md"}
        assert model.bytes == sum(map(len, files.values()))
    assert fetched.facts[f"hf://{TARGET}"].hidden_size == 2048
    assert fetched.facts[f"hf://{HEAD}"].architectures == ("LlamaForCausalLMEagle3",)


async def test_a_second_fetch_of_the_pair_downloads_nothing(pod: Pod, hub: Hub) -> None:
    first = await pod.fetch(TARGET, HEAD)
    hub.asked.clear()
    second = await pod.fetch(TARGET, HEAD)
    assert second.message == first.message
    assert hub.asked == [f"GET /api/models/{name}/revision/main" for name in (TARGET, HEAD)]


async def test_pinned_to_commits_nothing_is_asked_at_all(pod: Pod, hub: Hub) -> None:
    pair = [f"{name}@{hub.commit(name)}" for name in (TARGET, HEAD)]
    assert (await pod.fetch(*pair)).code == 0
    hub.asked.clear()
    assert (await pod.fetch(*pair)).code == 0
    assert hub.asked == []


async def test_what_another_deployment_has_brought_is_not_brought_again(pod: Pod, hub: Hub) -> None:
    await pod.fetch(TARGET, HEAD)
    hub.asked.clear()
    ended = await pod.fetch(TARGET, "paceline-test/mismatched-head")
    assert ended.code == 0, ended.log
    assert hub.downloads
    assert not [line for line in hub.downloads if TARGET in line]


async def test_two_fetches_at_once_do_the_work_once(pod: Pod, hub: Hub) -> None:
    started = [await pod.start(TARGET, HEAD) for _ in range(2)]
    ended = await asyncio.gather(*map(pod.end, started))
    assert [one.code for one in ended] == [0, 0], ended
    assert ended[0].message == ended[1].message
    assert len(hub.downloads) == len(set(hub.downloads))
    assert list((pod.volume / "fetch" / "locks").iterdir()) == []


async def test_a_cut_connection_is_resumed_where_it_was_cut(pod: Pod, hub: Hub) -> None:
    weights = safetensors({"weight": noise("big", 3 * MEBIBYTE, 4)})
    hub.repositories["big/model"] = Repository(
        history=(snapshot({"config.json": b"{}", "model.safetensors": weights}),)
    )

    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "HEAD" or not request.path.endswith(".safetensors") or "Range" in request.headers:
            return await handler(request)
        response = web.StreamResponse(headers={"Content-Length": str(len(weights))})
        await response.prepare(request)
        await response.write(weights[: 12 * MEBIBYTE])
        assert request.transport is not None
        request.transport.close()
        return response

    hub.answer = answer
    ended = await pod.fetch("big/model")
    assert ended.code == 0, ended.log
    # The client hands on 10 MiB at a time: what came after them is asked for again.
    (whole, rest) = [line for line in hub.downloads if ".safetensors" in line]
    assert rest == f"{whole} bytes={10 * MEBIBYTE}-"
    assert (Path(ended.models()["big/model"]["path"]) / "model.safetensors").read_bytes() == weights


async def test_after_a_kill_the_next_try_takes_the_lock_over_and_keeps_whole_files(pod: Pod, hub: Hub) -> None:
    reached = asyncio.Event()

    async def stall(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "GET" and "00002-of-00002" in request.path:
            await asyncio.sleep(1)  # the other, smaller files arrive
            reached.set()
            await asyncio.sleep(30)
        return await handler(request)

    hub.answer = stall
    process, message = await pod.start(TARGET)
    await reached.wait()
    blobs = pod.volume / "hub" / "models--Qwen--Qwen3-Coder-Next" / "blobs"
    process.kill()
    await process.wait()
    assert list(blobs.glob("*.incomplete"))
    (lock,) = (pod.volume / "fetch" / "locks").iterdir()
    lock.unlink()  # the waiting is tested in test_lock.py

    hub.answer = None
    hub.asked.clear()
    ended = await pod.fetch(TARGET)
    assert ended.code == 0, ended.log
    assert [line.rsplit("/", 1)[1] for line in hub.downloads] == ["model-00002-of-00002.safetensors"]
    assert not message.exists()
    assert not list(blobs.glob("*.incomplete"))


async def test_sigterm_lets_go_of_the_locks_at_once(pod: Pod, hub: Hub) -> None:
    reached = asyncio.Event()

    async def stall(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "GET" and request.path.endswith(".safetensors"):
            reached.set()
            await asyncio.sleep(30)
        return await handler(request)

    hub.answer = stall
    process, _ = await pod.start(TARGET, HEAD)
    await reached.wait()
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 5) == 143
    assert list((pod.volume / "fetch" / "locks").iterdir()) == []


async def test_neither_counts_until_both_are_there(pod: Pod, hub: Hub) -> None:
    async def break_head(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "GET" and HEAD in request.path and request.path.endswith(".safetensors"):
            raise web.HTTPInternalServerError
        return await handler(request)

    hub.answer = break_head
    ended = await pod.fetch(TARGET, HEAD)
    assert (ended.code, ended.message.rpartition(" ")[2]) == (1, "500")
    assert not list((pod.volume / "fetch").glob("sets/*"))
    hub.answer = None
    hub.asked.clear()
    assert (await pod.fetch(TARGET, HEAD)).code == 0
    assert {line.rsplit("/", 1)[1] for line in hub.downloads} == {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}


async def test_old_revisions_go_beyond_those_to_keep(pod: Pod, hub: Hub) -> None:
    first, second, third, _ = with_history(hub, HEAD, 4)
    for commit in (first, second, third):
        assert (await pod.fetch(TARGET, f"{HEAD}@{commit}", keepRevisions=2)).code == 0
    assert snapshots(pod, HEAD) == {second, third}
    assert snapshots(pod, TARGET) == {hub.commit(TARGET)}
    hub.asked.clear()
    assert (await pod.fetch(TARGET, f"{HEAD}@{second}", keepRevisions=2)).code == 0
    assert hub.downloads == []  # kept whole: files are shared between revisions
    assert (await pod.fetch(TARGET, f"{HEAD}@{first}", keepRevisions=2)).code == 0
    assert snapshots(pod, HEAD) == {first, second}  # the last two that were asked for


async def test_a_revision_in_use_is_never_removed(pod: Pod, hub: Hub) -> None:
    first, second, third = with_history(hub, HEAD, 3)
    for commit in (first, second, third):
        assert (await pod.fetch(f"{HEAD}@{commit}", keepRevisions=1, inUse=[first])).code == 0
    assert snapshots(pod, HEAD) == {first, third}


async def test_python_files_come_only_with_trust(pod: Pod, hub: Hub) -> None:
    files = {path: file.content for path, file in hub.repositories[HEAD].history[0].files.items()}
    hub.repositories[HEAD] = Repository(history=(snapshot({**files, "modeling.py": b"print()", "weights.bin": b"0"}),))
    ended = await pod.fetch(HEAD)
    path = Path(ended.models()[HEAD]["path"])
    assert not (path / "modeling.py").exists()
    ended = await pod.fetch(HEAD, trustRemoteCode=True)
    assert ended.code == 0, ended.log
    assert (path / "modeling.py").exists()
    assert not (path / "weights.bin").exists()


async def test_another_users_revisions_stay_whoever_fetches(pod: Pod, hub: Hub) -> None:
    first, second, third = with_history(hub, HEAD, 3)
    assert (await pod.fetch(f"{HEAD}@{first}", keepRevisions=1, user="team/one")).code == 0
    for commit in (second, third):
        assert (await pod.fetch(f"{HEAD}@{commit}", keepRevisions=1, user="team/two")).code == 0
    assert snapshots(pod, HEAD) == {first, third}


async def test_what_a_user_may_return_to_stays_until_it_asks_again(pod: Pod, hub: Hub) -> None:
    first, second, third = with_history(hub, HEAD, 3)
    assert (await pod.fetch(f"{HEAD}@{first}", keepRevisions=1, user="team/one")).code == 0
    assert (await pod.fetch(f"{HEAD}@{second}", keepRevisions=1, user="team/one", inUse=[first])).code == 0
    assert (await pod.fetch(f"{HEAD}@{second}", keepRevisions=1, user="team/two")).code == 0
    assert snapshots(pod, HEAD) == {first, second}
    assert (await pod.fetch(f"{HEAD}@{third}", keepRevisions=1, user="team/one")).code == 0
    assert snapshots(pod, HEAD) == {second, third}


async def test_facts_come_from_the_headers_too(pod: Pod) -> None:
    ended = await pod.fetch("paceline-test/tiny-llama", "paceline-test/tiny-llama-eagle3", "MiniMaxAI/MiniMax-M2.5")
    assert ended.code == 0, ended.log
    target, head, custom = FetchResult.from_message(ended.message).facts.values()
    assert target.has_nextn is False
    assert (head.has_d2t, head.lacks) == (True, ())
    assert head.weight_sizes.keys() >= {"fc", "d2t"}
    assert custom.custom_code
    files = contents(ended.models()["MiniMaxAI/MiniMax-M2.5"]["path"])
    assert not [name for name in files if name.endswith(".py")]  # trustRemoteCode is false


async def test_copies_that_the_index_leaves_out_do_not_count(pod: Pod, hub: Hub) -> None:
    name = "paceline-test/tiny-llama"
    files = {path: file.content for path, file in hub.repositories[name].history[0].files.items()}
    copied = {**files, "consolidated.safetensors": safetensors({"all": noise("again", 512, 512)})}
    hub.repositories[name] = Repository(history=(snapshot(copied),))
    ended = await pod.fetch(name)
    weights = sum(len(content) for path, content in files.items() if path.endswith(".safetensors"))
    assert FetchResult.from_message(ended.message).facts[f"hf://{name}"].weight_bytes == weights
