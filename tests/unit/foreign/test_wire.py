"""What comes over a wire while a pod of ours works: a hub's lists, and the stream of a server's answer."""

import asyncio
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from aiohttp import web
from huggingface_hub import set_client_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.rounds import CODE
from tests.unit.foreign.values import ANY, FEW, LONGEST, mangled, refused, said, spoiled, text_of

from paceline.core import Source
from paceline.engines import Speculation
from paceline.fetching import Artifact, FetchRequest
from paceline.pods.fetch import hub
from paceline.pods.fetch.request import FetchError
from paceline.pods.round.client import Requests, send
from paceline.pods.round.report import point

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = Artifact(source=Source.parse("hf://a/b"), revision="main")
DATASET = Artifact(source=Source.parse("hf://datasets/a/b/prompts.jsonl"), revision="main")
INFO = {
    **{"_id": "1", "id": "a/b", "sha": COMMIT, "private": False, "tags": ["x"], "downloads": 1, "likes": 1},
    **{"siblings": [{"rfilename": "config.json"}], "lastModified": "2026-01-01T00:00:00.000Z"},
    "cardData": {"license": "mit"},
}
LFS = {"oid": "a" * 64, "size": 8, "pointerSize": 134}
FILES = [
    {"type": "file", "path": "config.json", "size": 2, "oid": "b" * 40},
    {"type": "file", "path": "model.safetensors", "size": 8, "oid": "c" * 40, "lfs": LFS},
    {"type": "directory", "path": "more", "oid": "d" * 40},
    {"type": "file", "path": "prompts.jsonl", "size": 9, "oid": "e" * 40, "lfs": LFS},
]
NEXT = '<https://huggingface.co/api/next>; rel="next"'
LINKS = (
    "",
    NEXT,
    "<",
    '<>; rel="next"',
    "\x7f" * 20,
    '<:>; rel=next, <a>; rel="next"',
)


def body_of(good: Any) -> st.SearchStrategy[bytes]:
    return ((spoiled(good) | ANY).map(said) | text_of(json.dumps(good).encode())).map(
        lambda text: text.encode(errors="surrogatepass")
    )


@pytest.fixture
def answers() -> Iterator[list[httpx2.Response]]:
    """What the hub says next; when nothing is left, an empty list. Its client is the real one, without a socket."""
    left: list[httpx2.Response] = []

    def says(_: httpx2.Request) -> httpx2.Response:
        return left.pop(0) if left else httpx2.Response(200, json=[])

    def session() -> httpx2.Client:
        client = hub._session()
        return httpx2.Client(transport=httpx2.MockTransport(says), event_hooks=client.event_hooks)

    set_client_factory(session)
    yield left
    set_client_factory(hub._session)


WIRE = settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@given(
    info=body_of(INFO),
    tree=body_of(FILES),
    status=st.sampled_from((200, 200, 200, 200, 206, 301, 401, 403, 404, 416, 451)),
    link=st.sampled_from(LINKS),
    artifact=st.sampled_from((MODEL, DATASET)),
    code=st.sampled_from(("", "RepoNotFound", "GatedRepo", "EntryNotFound", "RevisionNotFound", "\u00ff")),
)
@settings(WIRE, max_examples=150)
def test_a_hub_lists_files_or_is_refused(
    answers: list[httpx2.Response], info: bytes, tree: bytes, status: int, link: str, artifact: Artifact, code: str
) -> None:
    error = {
        "X-Error-Code": code.encode("latin-1"),
        "X-Error-Message": tree[:200].replace(b"\n", b" ").replace(b"\r", b" "),
    }
    answers[:] = [
        httpx2.Response(200, content=info),
        httpx2.Response(status, content=tree, headers={"Link": link, **error}),
    ]
    with refused(FetchError):
        pinned = hub.resolve_revision(artifact)
        assert hub.WHOLE_COMMIT.fullmatch(pinned.commit)
        listing = hub.list_files(pinned, FetchRequest(models=(MODEL,)))
        assert listing.files
        assert all(
            hub.PLAIN.fullmatch(path) and isinstance(size, int) and size >= 0 for path, size in listing.files.items()
        )
        assert all(hub.DIGEST.fullmatch(digest) for digest in listing.digests.values())


def test_what_the_hub_really_says_is_read(answers: list[httpx2.Response]) -> None:
    answers[:] = [httpx2.Response(200, json=INFO), httpx2.Response(200, json=FILES)]
    listing = hub.list_files(hub.resolve_revision(MODEL), FetchRequest(models=(MODEL,)))
    assert listing.files.keys() >= {"config.json", "model.safetensors"}


@pytest.mark.parametrize("path", ["", None, 7, "../x", "/etc/passwd", "a//b", "a/./b", "a\0b"])
def test_a_path_that_is_none_is_refused(answers: list[httpx2.Response], path: object) -> None:
    answers[:] = [httpx2.Response(200, json=INFO), httpx2.Response(200, json=[*FILES, FILES[0] | {"path": path}])]
    pinned = hub.resolve_revision(MODEL)
    with pytest.raises(FetchError, match="which is not a file's path"):
        hub.list_files(pinned, FetchRequest(models=(MODEL,)))


def test_a_list_whose_pages_lead_in_a_circle_is_refused(answers: list[httpx2.Response]) -> None:
    """Empty pages count as well: otherwise a prefetch would go round until its Job's deadline."""
    page = {"Link": NEXT}
    answers[:] = [httpx2.Response(200, json=INFO), *(httpx2.Response(200, json=[], headers=page) for _ in range(3000))]
    pinned = hub.resolve_revision(MODEL)
    with pytest.raises(FetchError, match="pages"):
        hub.list_files(pinned, FetchRequest(models=(MODEL,)))


CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
EVENTS = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "Hello", "reasoning_content": "thinks"}}]},
    {"choices": [{"index": 0, "delta": {"content": " world", "tool_calls": [CALL]}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
]
REFUSAL = {"object": "error", "message": "no", "error": {"message": "no", "code": 400}}


def stream(events: Any) -> bytes:
    return (
        b"".join(b"data: " + said(event).encode(errors="surrogatepass") + b"\n\n" for event in events)
        + b"data: [DONE]\n\n"
    )


def reported(status: int, body: bytes) -> Mapping[str, Any]:
    """Of one request to a real server that answers so."""

    async def asks() -> Mapping[str, Any]:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(status=status, body=body, content_type="text/event-stream")

        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/chat/completions"
            return await send(Requests(url=url, bodies=({"messages": []},), concurrency=1), "")
        finally:
            await runner.cleanup()

    return asyncio.run(asks())


@given(
    status=st.sampled_from((200, 200, 200, 400, 500)),
    body=spoiled(EVENTS).map(lambda value: stream(value if isinstance(value, list) else [value]))
    | st.lists(ANY, max_size=4).map(stream)
    | mangled(stream(EVENTS))
    | st.binary(max_size=80)
    | st.sampled_from((b"data: " + b"[" * 20_000 + b"\n\n", b'data: {"a":' * 3, b"data:", b":\n\n", b"\xff\xfe\n"))
    | body_of(REFUSAL),
)
@settings(FEW, max_examples=150)
def test_a_stream_is_an_answer_or_an_error(status: int, body: bytes) -> None:
    told = reported(status, body)
    (error,) = told["errors"]
    assert len(error) <= LONGEST
    assert error or status == 200
    assert told["output_lens"][0] >= 0
    assert told["input_lens"][0] >= 0
    json.dumps(told, allow_nan=False)
    found = point(CODE, told, Speculation())
    assert (found.completed, found.errors) == ((0, 1) if error else (1, 0))
    assert found.output_throughput is not None
    assert math.isfinite(found.output_throughput)


def test_the_stream_of_an_engine_is_an_answer() -> None:
    told = reported(200, stream(EVENTS))
    assert (told["errors"], told["output_lens"], told["generated_texts"]) == ([""], [3], ["thinksHello worldf{}"])
