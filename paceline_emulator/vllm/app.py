"""HTTP: the pages that a probe, a round and a chat client ask for.

What is captured of the real one (tests/contract/captures/vllm/answers.jsonl) is answered as it is there. Of its other
routes (tokenizers, Anthropic's and the responses API, rendering) none is emulated: tests/contract/vllm_facts.py.
"""

import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from paceline_emulator.dialects import Asked
from paceline_emulator.log import access
from paceline_emulator.server import Job
from paceline_emulator.vllm import answers, asked
from paceline_emulator.vllm.answers import DONE, FINGERPRINT, KINDS, Kind, sse
from paceline_emulator.vllm.log import write
from paceline_emulator.vllm.metrics import CONTENT_TYPE
from paceline_emulator.vllm.server import VERSION, Server

SERVER = web.AppKey("server", Server)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GUARDED = ("/v1", "/v2", "/inference", "/cohere")
LARGEST_BODY = 64 * 2**20


def make(server: Server) -> web.Application:
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_BODY)
    app[SERVER] = server
    app.on_response_prepare.append(_sign)
    gets: dict[str, Handler] = {
        "/health": health,
        "/ping": health,
        "/version": version,
        "/load": load,
        "/metrics": metrics,
        "/v1/models": models,
    }
    posts: dict[str, Handler] = {"/ping": health, **dict.fromkeys(KINDS, generate)}
    app.add_routes([web.get(path, handler, allow_head=False) for path, handler in gets.items()])
    app.add_routes([web.post(path, handler) for path, handler in posts.items()])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A key guards what generates and lists; the rest stays open (`serve/middleware/authenticate.py:11`)."""
    server = request.app[SERVER]
    keys = server.launch.args["api_key"] or ([server.key] if server.key else [])
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if keys and request.path.startswith(GUARDED) and given not in keys:
        response: web.StreamResponse = _json({"error": "Unauthorized"}, 401)
    else:
        try:
            response = await handler(request)
        except web.HTTPException as known:
            response = _json({"detail": known.reason}, known.status)
        except asked.Refused as refused:
            response = _json(refused.said, refused.code)
    write(access(request, response.status))
    return response


async def _sign(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "uvicorn"


def _json(value: Any, status: int = 200) -> web.Response:
    """Without blanks, and without a charset."""
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return web.Response(body=body, status=status, content_type="application/json")


async def health(_: web.Request) -> web.Response:
    return web.Response()


async def version(_: web.Request) -> web.Response:
    return _json({"version": VERSION})


async def load(request: web.Request) -> web.Response:
    """Counted only with --enable-server-load-tracking."""
    server = request.app[SERVER]
    counted = bool(server.launch.args["enable_server_load_tracking"])
    return _json({"server_load": len(server.engine.running) + len(server.engine.waiting) if counted else 0})


async def metrics(request: web.Request) -> web.Response:
    return web.Response(text=request.app[SERVER].metrics(), headers={"Content-Type": CONTENT_TYPE})


async def models(request: web.Request) -> web.Response:
    server = request.app[SERVER]
    card = {
        "object": "model",
        "created": server.started,
        "owned_by": "vllm",
        "root": server.launch.target.path,
        "parent": None,
        "max_model_len": server.launch.context,
        "permission": [_permission(server.started)],
    }
    adapters = [
        {**card, "id": name, "root": path, "parent": server.launch.names[0]}
        for name, path in server.launch.adapters.items()
    ]
    return _json({"object": "list", "data": [{"id": name, **card} for name in server.launch.names] + adapters})


def _permission(created: int) -> dict[str, Any]:
    allowed = {"sampling": True, "logprobs": True, "search_indices": False, "view": True, "fine_tuning": False}
    return {
        "id": f"modelperm-{uuid.uuid4().hex[:16]}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        **{f"allow_{what}": whether for what, whether in allowed.items()},
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }


async def generate(request: web.Request) -> web.StreamResponse:
    server, kind = request.app[SERVER], KINDS[request.path]
    told, limit, salt = asked.read(await request.text(), kind, server.known_prompts, server.launch)
    if server.must_fail():
        message = "an emulated fault (PACELINE_EMULATE_FAIL_FRACTION)"
        raise asked.Refused(message, None, "InternalServerError", 500)
    id = f"{kind.prefix}-{uuid.uuid4().hex[:16]}"
    job = server.submit(told.prompt, id=id, limit=limit, ignore_eos=told.ignore_eos, salt=salt)
    try:
        return await (_stream if told.streaming else _whole)(request, kind, told, job)
    finally:
        server.abort(job)


async def _stream(request: web.Request, kind: Kind, told: Asked, job: Job) -> web.StreamResponse:
    """One chunk a step of the engine, however many tokens it holds; usage only if it was asked for."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    of_chunks = kind.object + (".chunk" if kind.opening else "")
    frame = {"id": job.request.id, "object": of_chunks, "created": int(time.time()), "model": told.model}
    if kind.opening:
        await response.write(sse(kind.opening(frame)))
    finish = None
    while finish is None:
        start, stop, finish = await job.chunk()
        if stop > start or finish:
            choice = kind.chunk(told, job, start, stop, finish)
            signed = {"system_fingerprint": FINGERPRINT} if finish and not told.usage else {}
            await response.write(sse({**frame, "choices": [choice], **signed, "kv_transfer_params": None}))
    if told.usage:
        last = {"choices": [], "usage": answers.usage(job), "system_fingerprint": FINGERPRINT}
        await response.write(sse({**frame, **last}))
    await response.write(DONE)
    await response.write_eof()
    return response


async def _whole(_: web.Request, kind: Kind, told: Asked, job: Job) -> web.StreamResponse:
    while (await job.chunk())[2] is None:
        pass
    frame = {"id": job.request.id, "object": kind.object, "created": int(time.time()), "model": told.model}
    return _json({**frame, **kind.whole(told, job)})
