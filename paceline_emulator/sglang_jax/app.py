"""The HTTP surface (entrypoints/http_server.py): what differs from SGLang's, and what is taken from it.

What is captured of the real one (tests/contract/captures/sglang_jax/answers.jsonl) is answered as it is there.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from paceline_emulator import app as sglang
from paceline_emulator import auth, generation, info
from paceline_emulator.generation import SERVER, SPEAKS, written
from paceline_emulator.log import access, say
from paceline_emulator.metrics import CONTENT_TYPE
from paceline_emulator.sglang_jax import flags, state
from paceline_emulator.sglang_jax.dialects import DIALECTS, WITHOUT_FORMS
from paceline_emulator.sglang_jax.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

VERSION = f"{flags.VERSION}+emulated"
INVALID = "Bad Request"
"""The type of what pydantic refuses."""
METRICS = """# HELP pd_bootstrap_registry_size Number of P registrations in the bootstrap registry
# TYPE pd_bootstrap_registry_size gauge
"""
"""All of it: one family, without a sample."""
UNTYPED = ("/flush_cache",)


def make(server: Server) -> web.Application:
    """/metrics is there only with --enable-metrics."""
    app = web.Application(middlewares=[_guard], client_max_size=sglang.LARGEST_BODY)
    app[SERVER], app[SPEAKS] = server, WITHOUT_FORMS if server.launch.speculative else DIALECTS
    app.on_response_prepare.append(_sign)
    gets: dict[str, Handler] = {
        "/health": health,
        "/ping": health,
        "/health_generate": sglang.health,
        "/get_server_info": server_info,
        "/get_model_info": model_info,
        "/get_load": load,
        "/v1/models": models,
        "/v1/models/{name:.+}": one_model,
        "/flush_cache": flush_cache,
    }
    if server.launch.args["enable_metrics"]:
        gets["/metrics"] = metrics
    posts: dict[str, Handler] = {"/flush_cache": flush_cache, **dict.fromkeys(DIALECTS, generate)}
    app.add_routes([web.get(path, handler, allow_head=False) for path, handler in gets.items()])
    app.add_routes([web.post(path, handler) for path, handler in posts.items()])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The API key, and a line for every request."""
    key = request.app[SERVER].launch.args["api_key"]
    if not auth.allowed(request.path, request.headers.get("Authorization"), key, None):
        response: web.StreamResponse = written({"error": "Unauthorized"}, 401)
    else:
        try:
            response = await handler(request)
        except web.HTTPException as known:
            response = written({"detail": known.reason}, known.status)
    say(access(request, response.status))
    return response


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "uvicorn"
    if request.path in UNTYPED:
        response.headers.popall("Content-Type", None)


async def health(_: web.Request) -> web.Response:
    """Static: says only that the process answers."""
    return web.Response()


async def metrics(_: web.Request) -> web.Response:
    return web.Response(text=METRICS, headers={"Content-Type": CONTENT_TYPE})


async def load(_: web.Request) -> web.Response:
    """It fails on every server (`KeyError: 'load'`, managers/tokenizer_manager.py:910)."""
    return web.Response(status=500, text="Internal Server Error")


async def server_info(request: web.Request) -> web.Response:
    """All arguments, keys in clear; nowhere an acceptance length."""
    server = request.app[SERVER]
    assert isinstance(server, Server)
    return written(state.server_info(server, VERSION))


async def model_info(request: web.Request) -> web.Response:
    args = request.app[SERVER].launch.args
    said = {name: args[name] for name in ("model_path", "tokenizer_path")}
    return written({**said, "is_generation": True, "preferred_sampling_params": args["preferred_sampling_params"]})


async def models(request: web.Request) -> web.Response:
    return written({"object": "list", "data": [_card(request)]})


async def one_model(request: web.Request) -> web.Response:
    card = _card(request)
    if request.match_info["name"] != card["id"]:
        raise web.HTTPNotFound
    return written(card)


def _card(request: web.Request) -> dict[str, Any]:
    (card,) = info.models(request.app[SERVER])["data"]
    return {name: value for name, value in card.items() if name != "parent"}


async def generate(request: web.Request) -> web.StreamResponse:
    if wrong := _invalid(await request.text(), "messages" if "chat" in request.path else None):
        return generation.error(wrong, INVALID, 400)
    body, parser = json.loads(await request.text()), request.app[SERVER].launch.args["tool_call_parser"]
    if body.get("tools") and body.get("tool_choice") != "none" and parser is None:
        unread = f"Internal server error: Unsupported tool_call_parser: {parser}"
        return generation.error(unread, "InternalServerError", 500)
    return await generation.generate(request)


def _invalid(raw: str, needed: str | None) -> str:
    """In pydantic's words; empty: nothing is wrong."""
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as problem:
        said = {"type": "json_invalid", "loc": ("body", problem.pos), "msg": "JSON decode error", "input": {}}
        return str([{**said, "ctx": {"error": problem.msg}}])
    if needed is None or not isinstance(body, dict) or needed in body:
        return ""
    given = {**body, "tool_choice": "none"}
    return str([{"type": "missing", "loc": ("body", needed), "msg": "Field required", "input": given}])


async def flush_cache(request: web.Request) -> web.Response:
    """At once: 400 while anything runs."""
    server = request.app[SERVER]
    assert isinstance(server, Server)
    pending = state.pending(server)
    if server.flush():
        say("Cache flushed successfully!")
        return web.Response(text=f"{sglang.FLUSHED}Flushed items: {info.kv_tokens(server)}\n")
    why = f"Cache not flushed because there are pending requests. {pending}"
    return web.Response(status=400, text=f"{sglang.FLUSHED}Reason: {why}\n")
