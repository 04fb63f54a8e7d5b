"""`kubectl paceline gate NAME`: the verdicts on a deployment as it is in the cluster, waited for if asked to."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable

from paceline.cli.live import command
from paceline.cli.live.deployment import Deployment
from paceline.cli.live.find import load, named
from paceline.cli.live.look import looks
from paceline.cli.live.verdicts import Answer, answers, exit_code, payload
from paceline.kube import Api


def run(args: argparse.Namespace) -> int:
    return command.run(_gate, args)


async def _gate(api: Api, namespace: str, args: argparse.Namespace) -> int:
    name = await named(api, namespace, args.file)
    deployment = await load(api, namespace, name)
    found = answers(deployment, args.pool)
    if args.wait:
        deployment = await wait(looks(api, namespace, name), args.pool, args.wait, _tell) or deployment
        found = answers(deployment, args.pool)
    if args.output == "json":
        command.print_json(payload(deployment, found))
    else:
        print("\n".join(map(str, found)))
    return exit_code(found)


async def wait(
    seen: AsyncIterator[Deployment], pool: str | None, longest: float, tell: Callable[[str], None]
) -> Deployment | None:
    """The deployment once every pool that is asked for has its answer, or as it was last seen when so many seconds have
    passed; None if it was not. `tell` hears what is waited for, each time that it changes."""
    last: Deployment | None = None
    told: tuple[Answer, ...] = ()
    try:
        async with asyncio.timeout(longest):
            async for last in seen:
                found = answers(last, pool)
                if all(answer.final for answer in found):
                    return last
                for answer in found:
                    if answer not in told and not answer.final:
                        tell(str(answer))
                told = found
    except TimeoutError:
        pass
    return last


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
