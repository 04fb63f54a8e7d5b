"""The process: parse, resolve, load, listen, drain. Exit codes are SGLang's: 2 for a flag, 1 for a combination."""

import asyncio
import os
import shlex
import signal
import traceback
from collections.abc import Sequence

from aiohttp import web

from paceline.emulator import app, flags, info, resolve, settings
from paceline.emulator.log import say
from paceline.emulator.resolve import Launch
from paceline.emulator.server import Server, Status
from paceline.emulator.settings import Settings

DRAIN_LAST = 0.2
"""Seconds left to write the last answers."""


def main(argv: Sequence[str]) -> int:
    """Runs one server until it is told to stop. `argv` is SGLang's, without the program."""
    parsed = flags.parse(argv)
    try:
        told = settings.read(os.environ)
        launch = resolve.resolve(parsed, told, say)
    except Exception:  # whatever resolution raises ends the real server too: a traceback and 1
        traceback.print_exc()
        return 1
    say(f"server_args={launch.args}")
    return asyncio.run(_serve(launch, told, argv))


async def _serve(launch: Launch, told: Settings, argv: Sequence[str]) -> int:
    await _load(launch, told)
    server = Server(launch, told, argv)
    runner = web.AppRunner(app.make(server), access_log=None, handler_cancellation=True, shutdown_timeout=DRAIN_LAST)
    await runner.setup()
    host, port = launch.args["host"], launch.args["port"]
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except OSError as problem:
        say(
            f"ERROR:    [Errno {problem.errno}] error while attempting to bind on address ({host!r}, {port}): {problem}"
        )
        return 1
    say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    await asyncio.sleep(told.warmup)
    server.status = Status.READY
    say("The server is fired up and ready to roll!")
    await _until_told(server)
    await _drain(server)
    await runner.cleanup()
    return 0


async def _load(launch: Launch, told: Settings) -> None:
    """No port is open and no signal is handled yet: as PID 1 it does not hear SIGTERM, like the real one."""
    architecture = (launch.target.architectures or ["?"])[0]
    say(f"Load weight begin. avail mem={info.AVAILABLE_GB:.2f} GB")
    await asyncio.sleep(0.7 * told.startup)
    say(f"Load weight end. elapsed={0.6 * told.startup:.2f} s, type={architecture}, mem usage={info.WEIGHT_GB:.2f} GB.")
    await asyncio.sleep(0.3 * told.startup)
    say(f"max_running_requests={launch.running_requests}, emulated: {shlex.quote(launch.target.path)}")


async def _until_told(server: Server) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    await told.wait()
    server.status = Status.DRAINING
    say("SIGTERM received. signum=15. Draining requests and shutting down...")


async def _drain(server: Server) -> None:
    """/health and /ready say 503; requests are still accepted; ends when none is left, however long that takes."""
    while not server.settings.force_shutdown:
        await asyncio.sleep(server.settings.drain_poll)
        remaining = list(server.jobs)
        say(f"Gracefully exiting... Remaining number of requests {len(remaining)}. {remaining[:10]}")
        if not remaining:
            await asyncio.sleep(DRAIN_LAST)
            return
