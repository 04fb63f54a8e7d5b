"""The HTTP surface (entrypoints/http_server.py): what differs from SGLang's, and what is taken from it."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from paceline_emulator import app as sglang
from paceline_emulator import auth, info
from paceline_emulator.generation import SERVER, generate
from paceline_emulator.log import say
from paceline_emulator.sglang_jax import flags
from paceline_emulator.sglang_jax.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

VERSION = f"{flags.VERSION}+emulated"


def make(server: Server) -> web.Application:
    app = web.Application(middlewares=[_guard], client_max_size=sglang.LARGEST_BODY)
    app[SERVER] = server
    gets: dict[str, Handler] = {
        "/health": health,
        "/ping": health,
        "/health_generate": sglang.health,
        "/get_server_info": server_info,
        "/get_model_info": model_info,
        "/v1/models": sglang.models,
        "/flush_cache": flush_cache,
    }
    posts: dict[str, Handler] = {
        "/flush_cache": flush_cache,
        "/generate": generate,
        "/v1/completions": generate,
        "/v1/chat/completions": generate,
    }
    app.add_routes([web.get(path, handler, allow_head=False) for path, handler in gets.items()])
    app.add_routes([web.post(path, handler) for path, handler in posts.items()])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The API key, and a line for every request."""
    key = request.app[SERVER].launch.args["api_key"]
    if not auth.allowed(request.path, request.headers.get("Authorization"), key, None):
        return web.json_response({"error": "Unauthorized"}, status=401)
    response = await handler(request)
    say(f'INFO:     {request.remote} - "{request.method} {request.path_qs} HTTP/1.1" {response.status}')
    return response


async def health(_: web.Request) -> web.Response:
    """Static: says only that the process answers."""
    return web.Response()


async def server_info(request: web.Request) -> web.Response:
    """All arguments, keys in clear; nowhere an acceptance length."""
    server = request.app[SERVER]
    assert isinstance(server, Server)
    known = {flags.SAID_AS.get(flag["dest"], flag["dest"]) for flag in flags.listed()}
    used, capacity = info.used_tokens(server), info.kv_tokens(server)
    state = {
        "last_gen_throughput": server.engine.report.throughput,
        "memory_usage": {"kvcache": info.KV_GB, "token_capacity": capacity},
        "engine_paused": False,
        "waiting_queue_size": len(server.engine.waiting),
        "running_batch_size": len(server.engine.running),
        "available_kv_tokens": capacity - used,
        "num_generated_tokens": 0,
        "forward_ct_decode": server.steps,
    }
    answer = {name: value for name, value in server.launch.args.items() if name in known}
    return web.json_response(
        {
            **answer,
            "max_total_num_tokens": capacity,
            "max_req_input_len": info.context(server) - info.MARGIN,
            "internal_states": [state],
            "version": VERSION,
        },
        dumps=info.compact,
    )


async def model_info(request: web.Request) -> web.Response:
    args = request.app[SERVER].launch.args
    return web.json_response(
        {
            "model_path": args["model_path"],
            "tokenizer_path": args["tokenizer_path"],
            "is_generation": True,
            "preferred_sampling_params": args["preferred_sampling_params"],
        },
        dumps=info.compact,
    )


async def flush_cache(request: web.Request) -> web.Response:
    """At once: 400 while anything runs."""
    if request.app[SERVER].flush():
        say("Cache flushed successfully!")
        return web.Response(text=sglang.FLUSHED)
    return web.Response(status=400, text=f"{sglang.FLUSHED}Reason: Cache not flushed: there are pending requests.\n")
