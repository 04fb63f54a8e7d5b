"""How a server ends whose scheduler, a child process, failed.

The child logs its exception and signals the parent, which says so and kills itself; PID 1 survives that and leaves
with 0 (managers/scheduler.py:3026, entrypoints/engine.py:545, managers/tokenizer_manager.py:1546,
utils/common_utils.py:145). Captured of the real one: tests/contract/captures/sglang_jax.
"""

import asyncio
import os
import signal
import traceback
from typing import NoReturn

from paceline_emulator import info
from paceline_emulator.log import say
from paceline_emulator.resolve import Launch
from paceline_emulator.server import Server, Status

LOOK_SECONDS = 0.05
PAIRED = ("EAGLE", "EAGLE3", "NEXTN")
"""Their prefix cache is keyed by pairs of tokens, so a request leaves one token more than is kept."""


def scheduler_failed(problem: BaseException, *, serving: bool) -> NoReturn:
    """Nothing is returned to: the process is gone."""
    try:
        raise problem
    except BaseException:
        say(f"Scheduler hit an exception: {traceback.format_exc()}")
    say("Received sigquit from a child process. It usually means the child failed.")
    if serving:
        say("Dumping requests before crash. crash_dump_folder=None")
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def leaks(launch: Launch) -> bool:
    """Whether a finished request's last token is never freed (mem_cache/radix_cache.py:311-345). Tokens of a page of
    several are freed together, and without a prefix cache all are."""
    paired = launch.args["speculative_algorithm"] in PAIRED
    return paired and launch.args["page_size"] == 1 and not launch.args["disable_radix_cache"]


async def end_when_idle(server: Server) -> None:
    """The first look at the memory of an idle scheduler (managers/scheduler.py:1699) is the last one of a server that
    leaks: after its warm-up, or after its first request where it has none."""
    for _ in iter(lambda: _has_served(server) and server.engine.idle, True):
        await asyncio.sleep(LOOK_SECONDS)
    expected, kept = info.kv_tokens(server), 16
    leak = (
        "token_to_kv_pool_allocator memory leak detected!\n"
        f"[dp=0] expected={expected}, avail={expected - kept - 1}, evict={kept}, protected=0\n"
    )
    scheduler_failed(ValueError(leak), serving=True)


def _has_served(server: Server) -> bool:
    warmed_up = server.status is not Status.STARTING and not server.launch.args["skip_server_warmup"]
    return warmed_up or server.finished_requests > 0
