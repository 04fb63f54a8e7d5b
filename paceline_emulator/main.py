"""The process: parse, resolve, load, listen. Exit codes are SGLang's: 2 for a flag, 1 for a combination."""

import asyncio
import os
import shlex
import sys
import traceback
from collections.abc import Sequence

from paceline_emulator import app, flags, info, process, resolve, settings
from paceline_emulator.log import say
from paceline_emulator.resolve import Launch
from paceline_emulator.server import Server, die
from paceline_emulator.settings import Settings


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one server until it is told to stop. `argv` is SGLang's, without the program: sys.argv's if None."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        told = settings.read(os.environ)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    parsed = flags.parse(argv, told.surface.version)
    try:
        launch = resolve.resolve(parsed, told, say)
    except Exception:  # whatever resolution raises ends the real server too: a traceback and 1
        traceback.print_exc()
        return 1
    say(f"server_args={launch.args}")
    return asyncio.run(_serve(launch, told, argv))


async def _serve(launch: Launch, told: Settings, argv: Sequence[str]) -> int:
    await _load(launch, told)
    server = Server(launch, told, argv)
    return await process.listen(server, app.make(server))


async def _load(launch: Launch, told: Settings) -> None:
    """No port is open and no signal is handled yet: as PID 1 it does not hear SIGTERM, like the real one."""
    architecture = (launch.target.architectures or ["?"])[0]
    say(f"Load weight begin. avail mem={info.AVAILABLE_GB:.2f} GB")
    await asyncio.sleep(0.7 * told.startup)
    say(f"Load weight end. elapsed={0.6 * told.startup:.2f} s, type={architecture}, mem usage={info.WEIGHT_GB:.2f} GB.")
    if launch.states and launch.states.dies and launch.states.loading:
        die(launch.states.dies)
    await asyncio.sleep(0.3 * told.startup)
    say(f"max_running_requests={launch.running_requests}, emulated: {shlex.quote(launch.target.path)}")
