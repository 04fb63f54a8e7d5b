"""POST /v1/chat/completions, /v1/completions and /generate."""

import json
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web

from paceline_emulator import info, logprobs, lora, structured
from paceline_emulator.dialects import Asked, Dialect, refused_in_stream
from paceline_emulator.log import say
from paceline_emulator.server import Job, Server
from paceline_emulator.structured import IgnoredError

SERVER = web.AppKey("server", Server)
SPEAKS: web.AppKey[dict[str, Dialect]] = web.AppKey("dialects", dict)

QUEUE_FULL = "The request queue is full."
BROKEN = "Internal server error: an emulated fault (PACELINE_EMULATE_FAIL_FRACTION)"


def written(value: Any, status: int = 200) -> web.Response:
    """JSON as a real server writes it: without blanks, and without a charset in its type."""
    return web.Response(body=info.compact(value).encode(), status=status, content_type="application/json")


def error(message: str, kind: str, code: int) -> web.Response:
    """An error before the answer began."""
    body = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return written(body, code)


async def generate(request: web.Request) -> web.StreamResponse:
    server, dialect = request.app[SERVER], request.app[SPEAKS][request.path]
    try:
        body = await request.json()
        if not isinstance(body, dict):
            raise ValueError("the body is not a JSON object")
        asked = dialect.read(body, server.known_prompts)
        lora.check(server.launch.args, asked.model)
        if structured.asked(body) is not None:
            server.metrics.add("sglang:num_so_requests_total")
        if server.settings.surface.checks_forms:
            dialect.check(body)
        if body.get("return_spec_tokens_details") and server.settings.surface.spec_details:
            asked = replace(asked, spec_details=_drafts(server))
        limit = _limit(server, asked)
        if asked.logprobs is not None and not server.settings.logprobs:
            raise ValueError(logprobs.REFUSED)
    except json.JSONDecodeError as problem:
        return error(f"Invalid JSON: {problem}", "BadRequestError", 400)
    except IgnoredError as problem:
        return await _refused(request, body, str(problem))
    except ValueError as problem:
        return error(str(problem), "BadRequestError", 400)
    await server.unpaused.wait()
    most = server.launch.args["max_queued_requests"]
    if most is not None and len(server.engine.waiting) >= most:
        return error(QUEUE_FULL, "SERVICE_UNAVAILABLE", 503)
    if server.must_fail():
        say(f"[http_server] Error: {BROKEN}")
        return await _break(request, dialect) if asked.streaming else error(BROKEN, "InternalServerError", 500)
    job = server.submit(
        asked.prompt,
        id=str(body.get("rid") or uuid.uuid4().hex),
        limit=limit,
        ignore_eos=asked.ignore_eos,
        streaming=asked.streaming,
    )
    try:
        return await (_stream if asked.streaming else _whole)(request, dialect, asked, job)
    finally:
        server.abort(job)


def _drafts(server: Server) -> int:
    """Draft tokens that a verify call can accept: the depth of a tree, the others of a block."""
    args = server.launch.args
    if not server.launch.speculative:
        return 0
    return int(args["speculative_num_steps"] or max(1, (args["speculative_num_draft_tokens"] or 2) - 1))


def _limit(server: Server, asked: Asked) -> int:
    """Output tokens at most; ValueError where prompt and answer exceed the context."""
    context = info.context(server)
    room = context - asked.prompt.tokens
    if room <= 0:
        raise ValueError(
            f"The input ({asked.prompt.tokens} tokens) is longer than the model's context length ({context} tokens)."
        )
    if asked.limit is None:
        return room
    if asked.limit > room:
        raise ValueError(
            f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested a "
            f"total of {asked.prompt.tokens + asked.limit} tokens: {asked.prompt.tokens} tokens from the input "
            f"messages and {asked.limit} tokens for the completion. Please reduce the number of tokens in the input "
            "messages or the completion to fit within the limit."
        )
    return asked.limit


async def _events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    return response


async def _stream(request: web.Request, dialect: Dialect, asked: Asked, job: Job) -> web.StreamResponse:
    """Headers go out with the first token, as the real server's do."""
    response: web.StreamResponse | None = None
    finish = None
    while finish is None:
        start, stop, finish = await job.chunk()
        response = response or await _events(request)
        words = dialect.chunk(asked, job, start, stop) if stop > start else b""
        await response.write(words + (dialect.closing(asked, job) if finish else b""))
    assert response is not None
    await response.write_eof()
    return response


async def _whole(request: web.Request, dialect: Dialect, asked: Asked, job: Job) -> web.StreamResponse:
    while (await job.chunk())[2] is None:
        pass
    return written(dialect.whole(asked, job))


async def _refused(request: web.Request, body: dict[str, Any], message: str) -> web.StreamResponse:
    """By the scheduler: in a stream after the status line."""
    if not body.get("stream"):
        return error(message, "BadRequestError", 400)
    response = await _events(request)
    await response.write(refused_in_stream(body, message))
    await response.write_eof()
    return response


async def _break(request: web.Request, dialect: Dialect) -> web.StreamResponse:
    """A failure that came after the status line: 200, and an error inside the stream."""
    response = await _events(request)
    await response.write(dialect.error(BROKEN, "InternalServerError", 500) + b"data: [DONE]\n\n")
    await response.write_eof()
    return response
