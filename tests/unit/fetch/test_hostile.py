"""A hub, or another user of the volume, that means harm: nothing of it is served, and nobody else's fetch stops."""

import json
import os
from pathlib import Path

import pytest
from aiohttp import web
from tests.support.messages import Says

from paceline.fetching import FetchResult
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError
from paceline_emulator.hub import Repository, snapshot

from .conftest import HEAD, Handler, Hub, Pod


def weights_of(pod: Pod, hub: Hub, name: str) -> Path:
    folder = pod.volume / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / hub.commit(name)
    return sorted(folder.glob("*.safetensors"))[0]


def forget(pod: Pod) -> None:
    """No set is complete."""
    for marker in pod.volume.glob("fetch/sets/*.json"):
        marker.unlink()


async def test_weights_of_the_same_size_and_another_content_are_brought_anew(pod: Pod, hub: Hub, says: Says) -> None:
    assert (await pod.fetch(HEAD)).code == 0
    forget(pod)
    there = weights_of(pod, hub, HEAD)
    good = there.read_bytes()
    there.resolve().write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    says(ended.message)
    assert (await pod.fetch(HEAD)).code == 0
    assert there.read_bytes() == good


async def test_what_leads_out_of_its_repository_is_not_read(pod: Pod, hub: Hub) -> None:
    assert (await pod.fetch(HEAD)).code == 0
    forget(pod)
    theirs, there = pod.volume / "theirs", weights_of(pod, hub, HEAD)
    theirs.write_bytes(there.read_bytes())
    there.unlink()
    there.symlink_to(theirs)
    config = there.with_name("config.json")
    config.unlink()
    os.mkfifo(config)
    assert (await pod.fetch(HEAD)).code == 1
    assert theirs.exists()
    assert (await pod.fetch(HEAD)).code == 0
    assert config.is_file()


async def test_what_the_hub_does_not_have_is_removed(pod: Pod, hub: Hub) -> None:
    assert (await pod.fetch(HEAD)).code == 0
    forget(pod)
    folder = weights_of(pod, hub, HEAD).parent
    (folder / "modeling_evil.py").write_text("print('here')")
    (folder / "more").symlink_to(pod.volume)
    assert (await pod.fetch(HEAD, trustRemoteCode=True)).code == 0
    assert not (folder / "modeling_evil.py").exists()
    assert not (folder / "more").exists()


async def test_a_marker_is_believed_only_as_far_as_it_says_what_was_asked(pod: Pod, hub: Hub) -> None:
    whole = await pod.fetch(HEAD)
    (marker,) = pod.volume.glob("fetch/sets/*.json")
    for lie in (
        {"commit": "../../../evil"},
        {"commit": "0" * 40},
        {"path": "/models/elsewhere"},
        {"source": "hf://some/body"},
    ):
        said = json.loads(whole.message)
        said["models"][0] |= lie
        marker.write_text(json.dumps(said))
        assert (await pod.fetch(HEAD)).message == whole.message, lie
    said = json.loads(whole.message)
    said["facts"][f"hf://{HEAD}"]["hidden_size"] = 1
    marker.write_text(json.dumps(said))
    assert (await pod.fetch(HEAD)).message == whole.message


@pytest.mark.parametrize("note", ["{", "[{}]", '["../../evil"]', "[" * 100_000, "7", "pipe", "link"])
async def test_a_bad_note_stops_nobodys_fetch_and_keeps_what_it_may_mean(pod: Pod, hub: Hub, note: str) -> None:
    files = {path: file.content for path, file in hub.repositories[HEAD].history[0].files.items()}
    history = tuple(snapshot({**files, "config.json": b'{"number": %d}' % n}) for n in range(2))
    hub.repositories[HEAD] = Repository(history=history)
    assert (await pod.fetch(f"{HEAD}@{history[0].commit}", user="team/one")).code == 0
    theirs = pod.volume / "fetch" / "users" / "x.json"
    match note:
        case "pipe":
            os.mkfifo(theirs)
        case "link":
            theirs.symlink_to("/proc/self/environ")
        case _:
            theirs.write_text(note)
    ended = await pod.fetch(f"{HEAD}@{history[1].commit}", keepRevisions=1, user="team/two")
    assert ended.code == 0, ended.log
    assert f"nothing is removed from the volume: {theirs}" in ended.log
    assert len(list((pod.volume / "hub").glob("models--*/snapshots/*"))) == 2


async def test_a_hub_names_no_file_outside_its_repository(pod: Pod, hub: Hub) -> None:
    """Its ETag is the name of the file that the client writes."""

    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/resolve/" in request.path and request.path.endswith("config.json"):
            headers = {
                "ETag": '"../../../fetch/users/x.json"',
                "X-Repo-Commit": hub.commit(HEAD),
                "Content-Length": "2",
            }
            return web.Response(body=b"[]", headers=headers)
        return await handler(request)

    hub.answer = named
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    assert f"hf://{HEAD}: " in ended.message
    assert not (pod.volume / "fetch" / "users").exists()


@pytest.mark.parametrize("named", ["../../../evil", "", "main", "0" * 39, "/etc"])
async def test_a_commit_that_is_none_is_no_directory(pod: Pod, hub: Hub, named: str, says: Says) -> None:
    async def revision(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/revision/" in request.path:
            return web.json_response({"id": HEAD, "sha": named, "siblings": []})
        return await handler(request)

    hub.answer = revision
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    says(ended.message)
    assert hub.downloads == []


@pytest.mark.parametrize(
    "path", ["../x.json", "/etc/x.json", "a/../../x.json", "a/./x.json", "a\\..\\x.json", "a//x.json"]
)
async def test_a_listed_file_is_none_outside_of_its_repository(pod: Pod, hub: Hub, path: str, says: Says) -> None:
    async def tree(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/tree/" in request.path:
            return web.json_response([{"type": "file", "path": path, "size": 1, "oid": "0" * 40}])
        return await handler(request)

    hub.answer = tree
    ended = await pod.fetch(HEAD)
    assert ended.code == 2
    says(ended.message)
    assert hub.downloads == []
    assert [one for one in pod.volume.rglob("*.json") if one.is_file()] == []


async def test_a_hub_that_answers_with_our_token_is_not_repeated(pod: Pod, hub: Hub) -> None:
    token = "canary-of-the-hub-0123456789"

    async def echo(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "/resolve/" in request.path and request.path.endswith("config.json"):
            named = {"ETag": f'"../{token} hf_canary0123456789"', "X-Repo-Commit": hub.commit(HEAD)}
            return web.Response(body=b"[]", headers=named)
        return await handler(request)

    hub.answer = echo
    ended = await pod.fetch(HEAD, environment={"HF_TOKEN": token})
    assert ended.code == 1
    assert "ETag: '\"../*** ***\"'" in ended.message
    assert token not in ended.termination_message + ended.log


async def test_a_hub_that_sends_more_than_it_lists_fills_no_volume(pod: Pod, hub: Hub, says: Says) -> None:
    async def flood(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "GET" or not request.path.endswith("config.json"):
            return await handler(request)
        response = web.StreamResponse(headers={"ETag": '"abc"', "X-Repo-Commit": hub.commit(HEAD)})
        await response.prepare(request)
        for _ in range(256):
            await response.write(b"#" * (1 << 20))
        return response

    hub.answer = flood
    ended = await pod.fetch(HEAD)
    assert ended.code == 1
    says(ended.message)
    largest = max(len(file.content) for file in hub.repositories[HEAD].history[0].files.values())
    assert sum(path.stat().st_size for path in pod.volume.rglob("*") if path.is_file()) < largest + (4 << 20)


@pytest.mark.parametrize(
    ("name", "content", "refused"),
    [
        ("tokenizer.pkl", b"\x80\x04K\x01.", False),
        ("tokenizer.py", b"print()", False),
        ("tokenizer_evil/__reduce__.bin", b"\x80\x04K\x01.", False),
        ("tokenizer.model", b"\x80\x04K\x01.", True),
        ("tokenizer", b"PK\x03\x04", True),
        ("vocab.txt", b"\x7fELF", True),
    ],
)
async def test_what_may_run_code_is_not_brought(
    pod: Pod, hub: Hub, name: str, content: bytes, refused: bool, says: Says
) -> None:
    files = {path: file.content for path, file in hub.repositories[HEAD].history[0].files.items()}
    hub.repositories[HEAD] = Repository(history=(snapshot({**files, name: content}),))
    ended = await pod.fetch(HEAD)
    if refused:
        assert ended.code == 2
        assert ended.message.startswith(f"hf://{HEAD}: {name} ")
        says(ended.message)
    else:
        assert ended.code == 0
        assert not [line for line in hub.downloads if name in line]


DEEP = b"[" * 100_000


def header(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


@pytest.mark.parametrize(
    "files",
    [
        {"config.json": DEEP},
        {"config.json": b"{" + b" " * (17 << 20) + b"}"},
        {"model.safetensors": header(DEEP)},
        {"model.safetensors": header(b"7")},
        {"model.safetensors": b"x"},
        {"model.safetensors.index.json": DEEP},
        {"model.safetensors.index.json": b'{"weight_map": {"a": 7, "b": "c"}}'},
        {"model.safetensors.index.json": b'{"weight_map": {"a": "../../x"}}'},
    ],
)
def test_a_model_that_is_deep_or_odd_is_refused_in_a_sentence(
    tmp_path: Path, files: dict[str, bytes], says: Says
) -> None:
    model = {"config.json": b'{"hidden_size": 8}', "model.safetensors": header(b"{}"), **files}
    for name, content in model.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FetchError, match=next(iter(files))) as refused:
        facts_of("hf://a/b", tmp_path)
    assert refused.value.final
    assert len(str(refused.value)) < 400
    says(refused.value)


def test_odd_values_of_a_configuration_are_passed_over(tmp_path: Path) -> None:
    odd = b'{"num_hidden_layers": {"a": []}, "layer_types": 7, "quantization_config": [1]}'
    for name, content in (("config.json", odd), ("model.safetensors", header(b"{}"))):
        (tmp_path / name).write_bytes(content)
    facts_of("hf://a/b", tmp_path)


@pytest.mark.parametrize(
    "lie",
    [
        {"models": [{"source": "hf://a/b", "revision": "main", "commit": "../../evil", "bytes": 1}]},
        {"models": [{"source": "hf://a/b", "revision": "main", "commit": "0" * 40, "bytes": "many"}]},
        {"models": [{"source": 7, "revision": "main", "commit": "0" * 40, "bytes": 1}]},
        {"facts": {"hf://a/b": {"hidden_size": "large"}}},
        {"facts": {"hf://a/b": {"architectures": [[]]}}},
        {"facts": {"hf://a/b": {"split_sizes": {"a": "b"}}}},
    ],
)
def test_a_message_that_lies_is_no_message(lie: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not the message of a finished fetch"):
        FetchResult.from_message(json.dumps({"version": 2, "models": [], "facts": {}, **lie}))


def test_a_message_without_an_end_is_no_message() -> None:
    with pytest.raises(ValueError, match="not the message of a finished fetch"):
        FetchResult.from_message("[" * 100_000)
