"""`kubectl paceline gate NAME`: a deployment's verdicts in the cluster; can wait for them."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable

from paceline.cli.live import command
from paceline.cli.live.deployment import ObservedDeployment
from paceline.cli.live.lookup import find_name, load_deployment
from paceline.cli.live.poll import looks
from paceline.cli.live.verdicts import PoolResult, exit_code, verdict_results, verdicts_payload
from paceline.kube import Api


def run(args: argparse.Namespace) -> int:
    return command.run(_gate, args)


async def _gate(api: Api, namespace: str, args: argparse.Namespace) -> int:
    name = await find_name(api, namespace, args.file)
    deployment = await load_deployment(api, namespace, name)
    found = verdict_results(deployment, args.pool)
    if args.wait:
        deployment = await wait(looks(api, namespace, name), args.pool, args.wait, _tell) or deployment
        found = verdict_results(deployment, args.pool)
    if args.output == "json":
        command.print_json(verdicts_payload(deployment, found))
    else:
        print("\n".join(map(str, found)))
    return exit_code(found)


async def wait(
    seen: AsyncIterator[ObservedDeployment], pool: str | None, longest: float, tell: Callable[[str], None]
) -> ObservedDeployment | None:
    """The deployment once every requested pool has its result, or its last state after `longest` seconds; None if it
    was not seen. `tell` gets each new description of what is awaited."""
    last: ObservedDeployment | None = None
    told: tuple[PoolResult, ...] = ()
    try:
        async with asyncio.timeout(longest):
            async for last in seen:
                found = verdict_results(last, pool)
                if all(result.final for result in found):
                    return last
                for result in found:
                    if result not in told and not result.final:
                        tell(str(result))
                told = found
    except TimeoutError:
        pass
    return last


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
