"""A loaded server as a process: it listens, is ready, and drains on SIGTERM."""

import asyncio
import signal

from aiohttp import web

from paceline_emulator.log import say
from paceline_emulator.server import Server, Status, die

DRAIN_LAST = 0.2
"""Seconds left to write the last answers."""


async def listen(server: Server, application: web.Application) -> int:
    """The exit code: 1 where the address is taken, else 0, once it was told to stop and has drained."""
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=DRAIN_LAST)
    await runner.setup()
    host, port = server.launch.args["host"], server.launch.args["port"]
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except OSError as problem:
        say(
            f"ERROR:    [Errno {problem.errno}] error while attempting to bind on address ({host!r}, {port}): {problem}"
        )
        return 1
    say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    await server.warm_up()
    if server.launch.states and server.launch.states.dies:
        die(server.launch.states.dies)
    server.status = Status.READY
    say("The server is fired up and ready to roll!")
    await _until_told(server)
    await _drain(server)
    await runner.cleanup()
    return 0


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
