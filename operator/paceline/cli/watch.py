"""`kubectl paceline watch NAME`: repeat `status`, drawn in place on a terminal."""

import argparse
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from paceline.cli.live import command
from paceline.cli.live.deployment import ObservedDeployment
from paceline.cli.live.lookup import find_name
from paceline.cli.live.payload import payload
from paceline.cli.live.poll import looks
from paceline.kube import Api


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "watch",
        epilog="If the output is not a terminal, or with -o json, it is written again whenever it has changed.",
    )
    command.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(_watch, args)


async def _watch(api: Api, namespace: str, args: argparse.Namespace) -> int:
    name = await find_name(api, namespace, args.name)
    seen = looks(api, namespace, name)
    if args.output == "json":
        async for deployment in differing(seen):
            print(json.dumps(payload(deployment), ensure_ascii=False), flush=True)
        return 0
    await (_draw if sys.stdout.isatty() else _print)(seen)
    return 0


async def differing(seen: AsyncIterator[ObservedDeployment]) -> AsyncIterator[ObservedDeployment]:
    """The states that differ from the previous one in more than elapsed time."""
    before: object = None
    async for deployment in seen:
        runs = [
            (pool.progress.run, pool.progress.rounds, pool.progress.message)
            for pool in deployment.pools
            if pool.progress
        ]
        now = (deployment.generation, deployment.stored, runs)
        if now != before:
            yield deployment
        before = now


async def _print(seen: AsyncIterator[ObservedDeployment]) -> None:
    from paceline.cli.live.screen import plain_text
    from paceline.cli.live.tree import tree

    async for deployment in differing(seen):
        now = datetime.now(UTC)
        print(f"{now:%H:%M:%S} UTC\n{plain_text(tree(deployment, now))}\n", flush=True)


async def _draw(seen: AsyncIterator[ObservedDeployment]) -> None:
    from rich.console import Console
    from rich.live import Live

    from paceline.cli.live.tree import tree

    with Live(console=Console(highlight=False), auto_refresh=False) as screen:
        async for deployment in seen:
            screen.update(tree(deployment, datetime.now(UTC)), refresh=True)
