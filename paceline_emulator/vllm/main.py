"""The process: parse, resolve, load, listen, end. Exit codes are vLLM's: 2 for an option, 1 for what cannot be started.

It listens only once the engine is up, so there is nothing between refused and ready (`launchers/launcher.py:373`).
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from aiohttp import web

from paceline_emulator import settings
from paceline_emulator.settings import Settings
from paceline_emulator.vllm import app, flags, launch
from paceline_emulator.vllm.launch import Launch
from paceline_emulator.vllm.log import log, write
from paceline_emulator.vllm.server import VERSION, Server, kv_tokens

LAST = 0.1
"""Seconds between two looks, and to write the last answers."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one server until it is told to stop. `argv` is vLLM's, without the program: sys.argv's if None."""
    argv = sys.argv[1:] if argv is None else argv
    parsed = flags.parse(argv)
    try:
        told = settings.read(os.environ)
        found = launch.resolve(parsed, told)
    except Exception:  # whatever it is ends the real server too: a traceback and 1
        traceback.print_exc()
        return 1
    return asyncio.run(_serve(found, told, argv))


async def _serve(found: Launch, told: Settings, argv: Sequence[str]) -> int:
    log("APIServer", "INFO", "startup.py:96", f"non-default args: {found.asked}")
    begins = f"Initializing a V1 LLM engine (v{VERSION}) with config: {found.configuration}"
    log("EngineCore", "INFO", "core.py:139", begins)
    log("Worker", "INFO", "gpu_model_runner.py:68", f"Starting to load model {found.target.path}...")
    await asyncio.sleep(told.startup)
    log("Worker", "INFO", "default_loader.py:506", f"Loading weights took {told.startup:.2f} seconds")
    tokens, times = kv_tokens(found), kv_tokens(found) / found.context
    holds = f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {found.context:,} tokens per request"
    log("EngineCore", "INFO", "kv_cache_utils.py:1147", f"{holds}: {times:.2f}x")
    server = Server(found, told, argv)
    runner = web.AppRunner(app.make(server), access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    host, port = found.args["host"] or "0.0.0.0", found.args["port"]
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except OSError as problem:
        write(f"OSError: [Errno {problem.errno}] {problem.strerror}: {(host, port)!r}")
        return 1
    write("INFO:     Application startup complete.")
    await _until_told()
    await _drain(server, int(found.args["shutdown_timeout"] or 0))
    await runner.cleanup()  # what still runs is aborted
    return 0


async def _drain(server: Server, seconds: int) -> None:
    """Until nothing runs, or for so long (v1/engine/core.py:1703-1794); by default for no time at all."""
    now = asyncio.get_running_loop().time
    end = now() + seconds
    while seconds and now() < end:
        server.engine.advance(now())
        if server.engine.idle:
            await asyncio.sleep(LAST)
            return
        await asyncio.sleep(LAST)


async def _until_told() -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()
