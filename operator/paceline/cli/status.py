"""`kubectl paceline status NAME`: a tree of pools, what serves, what is being measured, what is held."""

import argparse
from datetime import UTC, datetime

from paceline.cli.live import command
from paceline.cli.live.find import load, named
from paceline.cli.live.payload import payload
from paceline.kube import Api


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "status", help="show the pools of a deployment: what serves, on which evidence, what is going on"
    )
    command.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return command.run(_status, args)


async def _status(api: Api, namespace: str, args: argparse.Namespace) -> int:
    deployment = await load(api, namespace, await named(api, namespace, args.name))
    if args.output == "json":
        command.print_json(payload(deployment))
        return 0
    from paceline.cli.live.screen import show
    from paceline.cli.live.tree import tree

    show(tree(deployment, datetime.now(UTC)))
    return 0
