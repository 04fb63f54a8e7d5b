"""The process: parse, resolve, load, listen.

Exit codes: 2 for a flag, 1 for what the server refuses; what its scheduler finds out later kills it (`ends`).
"""

import asyncio
import os
import sys
import traceback
from collections.abc import Sequence

from paceline_emulator import process, settings
from paceline_emulator.log import say
from paceline_emulator.resolve import Launch
from paceline_emulator.settings import Settings
from paceline_emulator.sglang_jax import app, ends, flags, resolve
from paceline_emulator.sglang_jax.server import Server


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one server until it is told to stop. `argv` is sglang-jax's, without the program: sys.argv's if None."""
    argv = sys.argv[1:] if argv is None else argv
    parsed = flags.parse(argv)
    try:
        told = settings.read(os.environ)
        launch = resolve.resolve(parsed, told)
        return asyncio.run(_serve(launch, told, argv))
    except Exception:  # whatever it raises ends the real server too: a traceback and 1
        traceback.print_exc()
        return 1


async def _serve(launch: Launch, told: Settings, argv: Sequence[str]) -> int:
    """No port is open while it loads and compiles."""
    say(f"server_args={launch.args}")
    say("Starting parallel weight loading via JAX Lazy Loader...")
    await asyncio.sleep(told.startup)
    say("All weights loaded successfully.")
    try:
        resolve.loaded(launch)
    except Exception as problem:
        ends.scheduler_failed(problem, serving=False)
    server = Server(launch, told, argv)
    if ends.leaks(launch):
        server.tasks.add(asyncio.create_task(ends.end_when_idle(server)))
    return await process.listen(server, app.make(server))
