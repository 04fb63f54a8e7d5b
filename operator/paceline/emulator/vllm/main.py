"""The process: parse, resolve, load, listen, end. Exit codes are vLLM's: 2 for an option, 1 for what cannot be started.

It listens only once the engine is up, so there is nothing between refused and ready (`launchers/launcher.py:373`).
"""

import asyncio
import os
import signal
import traceback
from collections.abc import Sequence

from aiohttp import web

from paceline.emulator import settings
from paceline.emulator.log import say
from paceline.emulator.settings import Settings
from paceline.emulator.vllm import app, flags, launch
from paceline.emulator.vllm.launch import Launch
from paceline.emulator.vllm.server import VERSION, Server, kv_tokens


def main(argv: Sequence[str]) -> int:
    """Runs one server until it is told to stop. `argv` is vLLM's, without the program."""
    parsed = flags.parse(argv)
    try:
        told = settings.read(os.environ)
        found = launch.resolve(parsed, told)
    except Exception:  # whatever it is ends the real server too: a traceback and 1
        traceback.print_exc()
        return 1
    return asyncio.run(_serve(found, told, argv))


async def _serve(found: Launch, told: Settings, argv: Sequence[str]) -> int:
    say(f"(EngineCore) INFO [core.py:140] Initializing a V1 LLM engine (v{VERSION}) with config: {found.configuration}")
    await asyncio.sleep(told.startup)
    say(f"(EngineCore) INFO [kv_cache_utils.py] GPU KV cache size: {kv_tokens(found):,} tokens")
    server = Server(found, told, argv)
    runner = web.AppRunner(app.make(server), access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    host, port = found.args["host"] or "0.0.0.0", found.args["port"]
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except OSError as problem:
        say(f"OSError: [Errno {problem.errno}] {problem.strerror}: {(host, port)!r}")
        return 1
    say("INFO:     Application startup complete.")
    await _until_told()
    await runner.cleanup()  # --shutdown-timeout is 0: what runs is aborted
    return 0


async def _until_told() -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()
