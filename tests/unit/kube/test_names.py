"""What another client, here aiohttp as Kopf uses it, is told of objects of every size and depth."""

import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.support.answered import deep, talking_to

from paceline.kube import names_only

PATH = "/apis/a/v1/widgets"


def an_object(name: str, more: str = "{}") -> str:
    metadata = f'{{"namespace":"ns","name":"{name}","uid":"u","resourceVersion":"7","managedFields":[{more}]}}'
    return f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{metadata}}}'


def named(name: str) -> dict[str, object]:
    about = {"namespace": "ns", "name": name, "uid": "u", "resourceVersion": "7"}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": about}


HOSTILE = [an_object("deep", deep(10_000)), an_object("fat", ",".join(["{}"] * 450_000)), an_object("good")]
WATCH, LIST = (f"application/json;as={kind};g=meta.k8s.io;v=v1" for kind in (
    "PartialObjectMetadata", "PartialObjectMetadataList",
))  # fmt: skip


async def widgets(request: web.Request) -> web.StreamResponse:
    """As an API server that is asked for metadata alone."""
    if request.query.get("watch") == "true":
        assert WATCH in request.headers["Accept"]
        response = web.StreamResponse()
        await response.prepare(request)
        for one in HOSTILE:
            await response.write(f'{{"type":"ADDED","object":{one}}}\n'.encode())
        return response
    assert LIST in request.headers["Accept"]
    assert request.headers["Authorization"] == "Bearer secret"
    body = f'{{"kind":"List","metadata":{{"resourceVersion":"9","continue":"c"}},"items":[{",".join(HOSTILE)}]}}'
    return web.Response(text=body, content_type="application/json")


async def test_a_list_is_one_of_names(tmp_path: Path) -> None:
    async with talking_to(widgets, tmp_path) as transport, transport.session(names_only("widgets")) as session:
        response = await session.get(transport.server + PATH)
        listed = await response.json()
    assert listed == {
        "kind": "List",
        "metadata": {"resourceVersion": "9", "continue": "c"},
        "items": [named("deep"), named("fat"), named("good")],
    }


async def test_a_list_of_none_is_empty(tmp_path: Path) -> None:
    """As an API server answers in a cluster without any: of its own kinds an empty list is [], of metadata null."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"kind": "PartialObjectMetadataList", "metadata": {}, "items": None})

    async with talking_to(answer, tmp_path) as transport, transport.session(names_only("widgets")) as session:
        response = await session.get(transport.server + PATH)
        assert (await response.json())["items"] == []


async def test_a_watch_is_one_of_names(tmp_path: Path) -> None:
    async with talking_to(widgets, tmp_path) as transport, transport.session(names_only("widgets")) as session:
        response = await session.get(transport.server + PATH, params={"watch": "true"})
        events = [json.loads(line) async for line in response.content.iter_chunked(2**20)]
    assert events == [{"type": "ADDED", "object": named(name)} for name in ("deep", "fat", "good")]


async def test_a_refusal_and_other_paths_are_left_as_they_are(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        status = 200 if request.path.endswith("v1") else 403
        return web.json_response({"kind": "Status", "code": status, "details": {"retryAfterSeconds": 1}}, status=status)

    async with talking_to(answer, tmp_path) as transport, transport.session(names_only("widgets")) as session:
        for path, status in ((PATH, 403), ("/apis/a/v1", 200)):
            response = await session.get(transport.server + path)
            assert (response.status, (await response.json())["details"]) == (status, {"retryAfterSeconds": 1})


async def test_what_cannot_be_read_is_a_broken_connection(tmp_path: Path) -> None:
    """Kopf tries that again; of anything else it dies."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text='{"items": [', content_type="application/json")

    async with talking_to(answer, tmp_path) as transport, transport.session(names_only("widgets")) as session:
        response = await session.get(transport.server + PATH)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.json()
