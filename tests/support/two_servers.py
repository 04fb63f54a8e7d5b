"""Two emulated servers of SGLang at one address, which a round measures as one arm: `python -m` this, with SGLang's
arguments. Each has an engine and a cache of its own; they share the process, and the counters.

Both have these arguments, and take turns. With SECOND_TREE the second has another tree, and is sent all prompts but
those of the built-in set `chat`.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from paceline_emulator import app, flags, info, process, resolve, settings
from paceline_emulator.log import say
from paceline_emulator.prompts import Prompt
from paceline_emulator.server import Job, Server

SECOND_TREE = "SECOND_TREE"
"""Variable: steps, branches and draft tokens, with commas."""
TREE = ("--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens")
INFO = "/server_info"


class Pair(Server):
    """The first server, which hands requests to the second; all that is asked of it is asked of both."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        super().__init__(*started(first))
        self.second = Server(*started(second))
        self.second.metrics = self.metrics
        self.routed = first != second
        self.turns = itertools.cycle((False, True))

    def of_the_second(self, prompt: Prompt) -> bool:
        return prompt.dataset != "chat" if self.routed else next(self.turns)

    def submit(self, prompt: Prompt, **asked: Any) -> Job:
        if self.of_the_second(prompt):
            return self.second.submit(prompt, **asked)
        return super().submit(prompt, **asked)

    def abort(self, job: Job, *, told: bool = False) -> None:
        if job.request.id in self.second.jobs:
            self.second.abort(job, told=told)
        else:
            super().abort(job, told=told)

    async def wait_idle(self, seconds: float) -> None:
        await asyncio.gather(super().wait_idle(seconds), self.second.wait_idle(seconds))

    def flush(self) -> bool:
        return self.engine.idle and self.second.flush() and super().flush()

    def info(self) -> Mapping[str, Any]:
        """The first one's arguments, what each is doing, and the tokens that fit into both."""
        first, second = info.server_info(self), info.server_info(self.second)
        both = {key: first[key] + second[key] for key in ("internal_states", "max_total_num_tokens")}
        return {**first, **both}


def started(argv: Sequence[str]) -> tuple[resolve.Launch, settings.Settings, Sequence[str]]:
    told = settings.read(os.environ)
    return resolve.resolve(flags.parse(argv, told.surface.version), told, say), told, argv


def changed(argv: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The arguments with other values of these flags."""
    return [values.get(flag, word) for flag, word in zip(("", *argv), argv, strict=False)]


def application(pair: Pair) -> web.Application:
    @web.middleware
    async def of_both(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        return web.json_response(pair.info()) if request.path == INFO else await handler(request)

    made = app.make(pair)
    made.middlewares.append(of_both)
    return made


async def serve(argv: Sequence[str]) -> int:
    tree = os.environ.get(SECOND_TREE)
    pair = Pair(argv, changed(argv, dict(zip(TREE, tree.split(","), strict=True))) if tree else argv)
    return await process.listen(pair, application(pair))


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(sys.argv[1:])))
