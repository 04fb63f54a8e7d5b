"""HTTP: the pages that a probe, a round and a chat client ask for."""

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from paceline_emulator.dialects import Asked, chat_logprobs, read_chat
from paceline_emulator.server import Job
from paceline_emulator.vllm.log import write
from paceline_emulator.vllm.server import VERSION, Server

SERVER = web.AppKey("server", Server)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GUARDED = ("/v1", "/v2", "/inference", "/cohere")
LARGEST_BODY = 64 * 2**20
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
LONGEST_SALT = 128
FORBIDDEN = frozenset("@/\\\0")


def make(server: Server) -> web.Application:
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_BODY)
    app[SERVER] = server
    gets: dict[str, Handler] = {
        "/health": health,
        "/ping": health,
        "/version": version,
        "/metrics": metrics,
        "/v1/models": models,
    }
    app.add_routes([web.get(path, handler, allow_head=False) for path, handler in gets.items()])
    app.add_routes([web.post("/v1/chat/completions", chat)])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A key guards what generates and lists; the rest stays open (`serve/middleware/authenticate.py:11`)."""
    server = request.app[SERVER]
    keys = server.launch.args["api_key"] or ([server.key] if server.key else [])
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if keys and request.path.startswith(GUARDED) and given not in keys:
        return web.json_response({"error": "Unauthorized"}, status=401)
    try:
        response = await handler(request)
    except web.HTTPException as known:
        response = web.json_response({"detail": known.reason}, status=known.status)
    write(f'INFO:     {request.remote} - "{request.method} {request.path_qs} HTTP/1.1" {response.status}')
    return response


async def health(_: web.Request) -> web.Response:
    return web.Response()


async def version(_: web.Request) -> web.Response:
    return web.json_response({"version": VERSION})


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
        "permission": [],
    }
    return web.json_response({"object": "list", "data": [{"id": name, **card} for name in server.launch.names]})


async def chat(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    try:
        body = await request.json()
        asked = read_chat(body, server.known_prompts)
        limit, salt = _limit(server, asked), _salt(body)
        _check_tools(server, body)
    except (ValueError, AttributeError) as problem:
        return _error(str(problem), "BadRequestError", 400)
    if asked.model not in server.launch.names:
        return _error(f"The model `{asked.model}` does not exist.", "NotFoundError", 404)
    if server.must_fail():
        return _error("an emulated fault (PACELINE_EMULATE_FAIL_FRACTION)", "InternalServerError", 500)
    id = f"chatcmpl-{uuid.uuid4().hex}"
    job = server.submit(asked.prompt, id=id, limit=limit, ignore_eos=asked.ignore_eos, salt=salt)
    try:
        return await (_stream if asked.streaming else _whole)(request, asked, job)
    finally:
        server.abort(job)


async def _stream(request: web.Request, asked: Asked, job: Job) -> web.StreamResponse:
    """One chunk a step of the engine, however many tokens it holds; usage only if it was asked for."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    frame = {"id": job.request.id, "object": "chat.completion.chunk", "created": int(time.time()), "model": asked.model}
    await response.write(_event(frame, {"role": "assistant", "content": ""}, None))
    finish = None
    while finish is None:
        start, stop, finish = await job.chunk()
        if stop > start or finish:
            await response.write(_event(frame, {"content": _text(job, start, stop)}, finish))
    if asked.usage:
        await response.write(_sse({**frame, "choices": [], "usage": _usage(job)}))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def _whole(_: web.Request, asked: Asked, job: Job) -> web.StreamResponse:
    while (await job.chunk())[2] is None:
        pass
    message = {"role": "assistant", "content": _text(job, 0, job.request.produced)}
    choice = {"index": 0, "message": message, "logprobs": chat_logprobs(asked, job), "finish_reason": job.finish}
    frame = {"id": job.request.id, "object": "chat.completion", "created": int(time.time()), "model": asked.model}
    return web.json_response({**frame, "choices": [choice], "usage": _usage(job)})


def _limit(server: Server, asked: Asked) -> int:
    room = server.launch.context - asked.prompt.tokens
    if room <= 0 or (asked.limit or 0) > room:
        raise ValueError(
            f"This model's maximum context length is {server.launch.context} tokens. However, you requested "
            f"{asked.limit} output tokens and your prompt contains {asked.prompt.tokens} input tokens."
        )
    return asked.limit or room


def _check_tools(server: Server, body: Mapping[str, Any]) -> None:
    """Where tools are given, `auto` is the default (`entrypoints/openai/chat_completion/protocol.py`)."""
    by_itself = bool(body.get("tools")) and body.get("tool_choice") in (None, "auto")
    args = server.launch.args
    if by_itself and not (args["enable_auto_tool_choice"] and args["tool_call_parser"]):
        raise ValueError('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')


def _salt(body: Mapping[str, Any]) -> str | None:
    """`entrypoints/generate/base/protocol.py:42`."""
    salt = body.get("cache_salt")
    if salt is None:
        return None
    if not isinstance(salt, str) or not salt:
        raise ValueError("Parameter 'cache_salt' must be a non-empty string if provided.")
    if len(salt) > LONGEST_SALT or FORBIDDEN & set(salt):
        raise ValueError("Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', '\\'.")
    return salt


def _text(job: Job, start: int, stop: int) -> str:
    return job.prompt.text(start, stop, ends=job.finish == "stop" and stop == job.request.produced)


def _usage(job: Job) -> dict[str, int]:
    prompt, produced = job.request.prompt_tokens, job.request.produced
    return {"prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced}


def _event(frame: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> bytes:
    return _sse({**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})


def _sse(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _error(message: str, kind: str, code: int) -> web.Response:
    return web.json_response({"error": {"message": message, "type": kind, "param": None, "code": code}}, status=code)
