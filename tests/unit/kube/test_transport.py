"""What the transport makes of bad answers, from a server that gives them."""

import asyncio
import json
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from tests.support.answered import Handler, talking_to

from paceline.kube import (
    UNREAD,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    Ref,
    TooManyRequests,
    Transport,
    Unavailable,
    connect,
)
from paceline.kube.resources import CONFIG_MAP, POD
from paceline.kube.throttle import Throttle

REF = Ref(CONFIG_MAP, "ns", "a")


def answering(status: int, body: object, headers: dict[str, str] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers=headers, content_type="application/json")

    return handler


def status(reason: str, message: str = "", field: str = "") -> dict[str, object]:
    causes = [{"field": field}] if field else []
    return {"kind": "Status", "reason": reason, "message": message, "details": {"causes": causes}}


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (400, status("BadRequest"), Invalid),
        (401, status("Unauthorized"), Forbidden),
        (403, status("Forbidden"), Forbidden),
        (405, status("MethodNotAllowed"), ApiError),
        (409, status("Conflict"), Conflict),
        (410, status("Expired"), Gone),
        (422, status("Invalid"), Invalid),
        (422, status("Invalid", field="metadata.uid"), Conflict),
        (429, status("TooManyRequests"), TooManyRequests),
        (500, status("InternalError"), Unavailable),
        (500, status("", "failed to create typed patch object (…): .spec.x: field not declared in schema"), Invalid),
        (502, "<html>Bad Gateway</html>", Unavailable),
        (503, status("ServiceUnavailable"), Unavailable),
    ],
)
async def test_every_refusal_has_its_class(tmp_path: Path, code: int, body: object, error: type[ApiError]):
    async with talking_to(answering(code, body, {"Retry-After": "7"}), tmp_path) as transport:
        with pytest.raises(ApiError) as refused:
            await transport.get(REF)
    assert type(refused.value) is error
    assert (refused.value.status, refused.value.retry_after) == (code, 7)


async def test_a_command_waits_where_it_is_refused_for_the_moment(tmp_path: Path):
    answers = [answering(429, status("TooManyRequests"), {"Retry-After": "1"})] * 2 + [answering(200, {"a": 1})]

    async def handler(request: web.Request) -> web.StreamResponse:
        return await answers.pop(0)(request)

    async with talking_to(handler, tmp_path, tries=3) as transport:
        assert await transport.get(REF) == {"a": 1}
    assert answers == []


async def test_a_refusal_that_names_no_time_is_final(tmp_path: Path):
    """An eviction that a disruption budget forbids is such a 429."""
    async with talking_to(answering(429, status("TooManyRequests")), tmp_path, tries=5) as transport:
        with pytest.raises(TooManyRequests):
            await asyncio.wait_for(transport.get(REF), 5)


async def test_what_is_not_there_is_none_and_not_deleted(tmp_path: Path):
    async with talking_to(answering(404, status("NotFound")), tmp_path) as transport:
        assert await transport.get(REF) is None
        assert await transport.delete(REF, uid="u") is False


async def test_a_broken_answer_is_unavailable(tmp_path: Path):
    async with talking_to(answering(200, '{"kind": "Conf'), tmp_path) as transport:
        with pytest.raises(Unavailable):
            await transport.get(REF)


async def test_no_server_is_unavailable(tmp_path: Path):
    async with talking_to(answering(200, {}), tmp_path) as transport:
        pass
    async with await connect(str(tmp_path / "kubeconfig")) as transport:
        with pytest.raises(Unavailable):
            await transport.get(REF)


async def test_a_request_says_what_server_side_apply_needs(tmp_path: Path):
    seen: dict[str, object] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(path=request.path, method=request.method, query=dict(request.query), body=await request.json())
        seen.update({name: request.headers[name] for name in ("Content-Type", "Authorization")})
        return web.json_response({})

    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "a"}}
    async with talking_to(handler, tmp_path) as transport:
        await transport.apply(manifest, manager="paceline")
    assert seen == {
        "method": "PATCH",
        "path": "/api/v1/namespaces/ns/configmaps/a",
        "query": {"fieldManager": "paceline", "force": "true", "fieldValidation": "Strict"},
        "Content-Type": "application/apply-patch+yaml",
        "Authorization": "Bearer secret",
        "body": manifest,
    }


async def test_a_status_is_replaced_at_the_version_that_was_read(tmp_path: Path):
    seen: dict[str, object] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(path=request.path, method=request.method, body=await request.json())
        return web.json_response({})

    metadata = {"namespace": "ns", "name": "a", "uid": "1", "resourceVersion": "7"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}
    async with talking_to(handler, tmp_path) as transport:
        await transport.replace_status(manifest)
    assert seen == {
        "method": "PATCH",
        "path": "/api/v1/namespaces/ns/pods/a/status",
        "body": [
            {"op": "add", "path": "/status", "value": {"phase": "Running"}},
            {"op": "add", "path": "/metadata/resourceVersion", "value": "7"},
        ],
    }


async def test_a_rotated_service_account_token_is_read_again(tmp_path: Path):
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({})

    token, certificate = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    certificate.write_text("not read: the server speaks HTTP")
    async with talking_to(handler, tmp_path) as transport:
        settings = transport._client.configuration
        host = settings.host
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
        loader = InClusterConfigLoader(str(token), str(certificate), environ=environment)
        loader._token_refresh_period = timedelta(0)  # a minute, really
        loader.load_and_set(settings)
        loader.host = settings.host = host
        await transport.get(REF)
        token.write_text("second")
        await transport.get(REF)
    assert seen == ["bearer first", "bearer second"]


async def test_a_delete_carries_the_uid(tmp_path: Path):
    seen: dict[str, object] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(await request.json())
        return web.json_response({})

    async with talking_to(handler, tmp_path) as transport:
        assert await transport.delete(REF, uid="u1", propagation="Foreground")
    assert seen == {"preconditions": {"uid": "u1"}, "propagationPolicy": "Foreground"}


@pytest.mark.parametrize(("size", "asked"), [(10, [50, 50, 50]), (500_000, [50, 12, 3, 6, 12, 3, 6, 12, 3, 6, 12, 3])])
async def test_a_page_is_bounded_by_number_and_by_bytes(tmp_path: Path, size: int, asked: list[int]):
    """What has too many bytes is asked for again with fewer objects."""
    limits: list[int] = []

    async def handler(request: web.Request) -> web.Response:
        limit, start = int(request.query["limit"]), int(request.query.get("continue", 0))
        limits.append(limit)
        end = min(start + limit, 110)
        items = [{"metadata": {"name": str(n), "managedFields": [{}]}, "status": "x" * size} for n in range(start, end)]
        about = {"resourceVersion": "9"} | ({"continue": str(end)} if end < 110 else {})
        return web.json_response({"metadata": about, "items": items})

    async with talking_to(handler, tmp_path) as transport:
        found = await transport.list(POD)
    assert [item["metadata"] for item in found.items] == [{"name": str(n)} for n in range(110)]
    assert limits[: len(asked)] == asked
    assert (found.resource_version, found.items[0]["kind"]) == ("9", "Pod")


async def test_a_large_answer_does_not_hold_up_the_loop(tmp_path: Path):
    """4 MB of small objects are parsed beside it."""
    body = json.dumps({"metadata": {"name": "a"}, "spec": [{}] * 1_000_000})

    async with talking_to(answering(200, body), tmp_path) as transport:
        beats, reading = 0, asyncio.create_task(transport.get(REF))
        while not reading.done():
            await asyncio.sleep(0.01)
            beats += 1
    assert beats >= 5
    found = await reading
    assert found is not None
    assert found[UNREAD] == "spec: has 3000001 bytes as JSON, at most 262144 are read"


def watching(*lines: object, cut: str = "") -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(json.dumps(line).encode() + b"\n")
        await response.write(cut.encode())
        return response

    return handler


def added(version: int, size: int = 0) -> dict[str, object]:
    return {"type": "ADDED", "object": {"metadata": {"resourceVersion": str(version)}, "data": "x" * size}}


async def versions(transport: Transport) -> list[str]:
    async with aclosing(transport.watch(POD, resource_version="1")) as watch:
        return [event.object["metadata"]["resourceVersion"] async for event in watch]


async def test_a_watch_ends_when_the_server_ends_it(tmp_path: Path):
    async with talking_to(watching(added(2), added(3, size=1_500_000)), tmp_path) as transport:
        assert await versions(transport) == ["2", "3"]


async def test_an_error_in_a_watch_is_raised(tmp_path: Path):
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    async with talking_to(watching(added(2), gone), tmp_path) as transport:
        with pytest.raises(Gone, match="too old"):
            await versions(transport)


async def test_a_watch_cut_in_the_middle_of_an_event_is_unavailable(tmp_path: Path):
    async with talking_to(watching(added(2), cut='{"type": "ADD'), tmp_path) as transport:
        with pytest.raises(Unavailable):
            await versions(transport)


async def test_a_throttle_lets_a_burst_pass_and_then_keeps_the_rate():
    now, slept = 0.0, []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    throttle = Throttle(qps=10, burst=3, clock=lambda: now, sleep=sleep)
    for _ in range(5):
        await throttle.take()
    assert slept == pytest.approx([0.1, 0.2])
    slept.clear()
    now = 100.0
    for _ in range(4):
        await throttle.take()
    assert slept == pytest.approx([0.1])


async def test_a_watch_that_a_proxy_cuts_between_two_events_has_ended(tmp_path: Path):
    """As HAProxy does with a connection that is idle for as long as its time-out: if that were silence, an operator
    whose rarest kinds never change would be restarted every five minutes."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = await watching(added(2))(request)
        assert request.transport is not None
        request.transport.close()  # without the last chunk
        return response

    async with talking_to(handler, tmp_path) as transport:
        assert await versions(transport) == ["2"]
