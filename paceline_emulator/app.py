"""The HTTP surface: routes, authorisation, access log, and every endpoint that does not generate text."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web

from paceline_emulator import auth, info, prompts
from paceline_emulator.dialects import DIALECTS
from paceline_emulator.generation import SERVER, SPEAKS, generate, written
from paceline_emulator.log import access, say
from paceline_emulator.metrics import CONTENT_TYPE
from paceline_emulator.server import Server, Status

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_POLL = 1.0
"""Seconds between two looks at whether the health check's token came: /health never answers faster."""
HEALTH_TIMEOUT = 20
FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the "
    "operation will not be performed.)\n"
)
LARGEST_BODY = 64 * 2**20


def make(server: Server) -> web.Application:
    """/metrics is there only with --enable-metrics."""
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_BODY)
    app[SERVER], app[SPEAKS] = server, DIALECTS
    app.on_response_prepare.append(_sign)
    gets: dict[str, Handler] = {
        "/health": health,
        "/health_generate": health,
        "/ready": ready,
        "/ping": ping,
        "/server_info": server_info,
        "/get_server_info": server_info,
        "/model_info": model_info,
        "/get_model_info": model_info,
        "/v1/models": models,
        "/v1/loads": loads,
        "/flush_cache": flush_cache,
    }
    posts: dict[str, Handler] = {
        "/flush_cache": flush_cache,
        "/abort_request": abort_request,
        "/pause_generation": pause,
        "/continue_generation": go_on,
        "/emulate": emulate,
        "/generate": generate,
        "/v1/completions": generate,
        "/v1/chat/completions": generate,
    }
    if server.launch.args["enable_metrics"]:
        gets["/metrics"] = metrics
    gets = {path: handler for path, handler in gets.items() if path not in server.settings.surface.lacks}
    app.add_routes([web.get(path, handler, allow_head=False) for path, handler in gets.items()])
    app.add_routes([web.post(path, handler) for path, handler in posts.items()])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Authorisation, counters and the access log around every request."""
    server = request.app[SERVER]
    args, labels = server.launch.args, {"endpoint": request.path, "method": request.method}
    server.metrics.add("sglang:http_requests_total", 1, **labels)
    server.metrics.add("sglang:http_requests_active", 1, **labels)
    status = 500
    try:
        if not auth.allowed(request.path, request.headers.get("Authorization"), args["api_key"], args["admin_api_key"]):
            status = 401
            return written({"error": "Unauthorized"}, status=401)
        response = await handler(request)
        status = response.status
        return response
    except web.HTTPException as known:
        status = known.status
        return written({"detail": known.reason}, status=known.status)
    finally:
        server.metrics.add("sglang:http_requests_active", -1, **labels)
        server.metrics.add("sglang:http_responses_total", 1, status_code=str(status), **labels)
        if not request.path.startswith(tuple(args["uvicorn_access_log_exclude_prefixes"] or ("\0",))):
            say(access(request, status))


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "uvicorn"


async def health(request: web.Request) -> web.Response:
    """Generates a token and looks once a second whether anything came back; /health of 0.4.5 always says yes."""
    server = request.app[SERVER]
    if request.path == "/health" and not server.settings.surface.health_generates:
        return web.Response()
    if server.status is not Status.READY:
        return web.Response(status=503)
    silent = server.engine.hung or not server.settings.health_generates
    if silent and request.path == "/health":
        return web.Response()
    probe = prompts.prompt("", "", {})
    asked = asyncio.get_running_loop().time()
    job = server.submit(
        probe, id=f"HEALTH_CHECK_{uuid.uuid4().hex}", limit=1, ignore_eos=True, streaming=False, counted=False
    )
    try:
        while asyncio.get_running_loop().time() < asked + HEALTH_TIMEOUT:
            await asyncio.sleep(HEALTH_POLL)
            if server.delivered > asked:
                return web.Response()
        return web.Response(status=503)
    finally:
        server.abort(job)


async def ready(request: web.Request) -> web.Response:
    return web.Response(status=200 if request.app[SERVER].ready else 503)


async def ping(request: web.Request) -> web.Response:
    return web.Response(status=200 if request.app[SERVER].status is Status.READY else 503)


async def server_info(request: web.Request) -> web.Response:
    return written(info.server_info(request.app[SERVER]))


async def model_info(request: web.Request) -> web.Response:
    return written(info.model_info(request.app[SERVER]))


async def models(request: web.Request) -> web.Response:
    return written(info.models(request.app[SERVER]))


async def loads(request: web.Request) -> web.Response:
    began = time.perf_counter()
    server = request.app[SERVER]
    answer = info.loads(server)
    answer["loads"] = [info.only(load, request.query.get("include")) for load in answer["loads"]]
    server.metrics.observe("sglang:get_loads_duration_seconds", time.perf_counter() - began)
    if request.query.get("format") == "prometheus":
        return web.Response(text=info.loads_as_prometheus(answer["loads"]), headers={"Content-Type": CONTENT_TYPE})
    return written(answer)


async def metrics(request: web.Request) -> web.Response:
    server = request.app[SERVER]
    server.refresh_metrics()
    return web.Response(text=server.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


async def flush_cache(request: web.Request) -> web.Response:
    """400 when not idle; with `timeout` it waits so many seconds for that, and a second one meanwhile is refused."""
    server = request.app[SERVER]
    try:
        timeout = float(request.query.get("timeout", "0"))
    except ValueError:
        return written({"detail": "timeout is not a number"}, status=422)
    if server.flushing:
        return web.Response(status=400, text="Another flush_cache is already in progress.")
    server.flushing = True
    try:
        await server.wait_idle(timeout)
    finally:
        server.flushing = False
    if server.flush():
        say("Cache flushed successfully!")
        return web.Response(text=FLUSHED)
    say(
        f"Cache not flushed because there are pending requests. #queue-req: {len(server.engine.waiting)}, "
        f"#running-req: {len(server.engine.running)}"
    )
    return web.Response(status=400, text="Timed out waiting for idle state." if timeout else "Flush cache failed.\n")


async def abort_request(request: web.Request) -> web.Response:
    """`{"rid": …}` or `{"abort_all": true}`."""
    server, body = request.app[SERVER], await request.json()
    for job in list(server.jobs.values()):
        if body.get("abort_all") or job.request.id == body.get("rid"):
            server.abort(job, told=True)
    return web.Response()


async def pause(request: web.Request) -> web.Response:
    """New requests wait; those that run are aborted, unless another mode is asked for."""
    server = request.app[SERVER]
    body = await request.json() if request.can_read_body else {}
    server.unpaused.clear()
    if body.get("mode", "abort") == "abort":
        for job in list(server.jobs.values()):
            server.abort(job)
    return written({"status": "ok"})


async def go_on(request: web.Request) -> web.Response:
    request.app[SERVER].unpaused.set()
    return written({"status": "ok"})


async def emulate(request: web.Request) -> web.Response:
    """What no engine has: `{"accepting": 0.3}` leaves that fraction of the accepted draft tokens, as of a head that has
    gone stale; `{"hung": true}` lets no step end, while /health goes on saying 200; `{"failing": 1}` fails that
    fraction of the requests to come."""
    body, server = await request.json(), request.app[SERVER]
    try:
        accepting, hung = float(body.get("accepting", server.engine.accepting)), bool(body.get("hung", False))
        failing = float(body.get("failing", server.failing))
        if not (0 <= accepting <= 1 and 0 <= failing <= 1):
            raise ValueError(accepting, failing)
    except (TypeError, ValueError):
        return written({"detail": "accepting and failing are fractions from 0 to 1"}, status=422)
    server.emulate(accepting=accepting, hung=hung, failing=failing)
    return written({"accepting": accepting, "hung": hung, "failing": failing})
