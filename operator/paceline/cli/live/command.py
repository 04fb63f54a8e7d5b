"""Shared by the subcommands on a cluster: NAME, kubectl's options, -o json, and errors with a way out."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from paceline.cli import cluster, options
from paceline.cli.live.errors import said
from paceline.core.text import printable
from paceline.kube import ApiError, Transport

Command = Callable[[Transport, str, argparse.Namespace], Awaitable[int]]
"""Takes the API server and the namespace; returns the exit code."""
_NEEDS = "this view needs rich: pip install rich; -o json does without"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a SpeculativeDeployment; may be left out if there is only one"
    )
    options.add_json(parser)
    options.add_kubectls(parser)


def run(command: Command, args: argparse.Namespace) -> int:
    """The command's exit code; on a failure 1, with a sentence on stderr."""
    try:
        return asyncio.run(_connected(command, args))
    except ApiError as error:
        return _failed(args, said(error))
    except ImportError as error:
        return _failed(args, f"{_NEEDS} ({error})")
    except ValueError as error:
        return _failed(args, " ".join(str(error).split()))
    except KeyboardInterrupt:
        return 130


async def _connected(command: Command, args: argparse.Namespace) -> int:
    async with cluster.connection(args) as (api, namespace):
        return await command(api, namespace, args)


def _failed(args: argparse.Namespace, why: str) -> int:
    print(f"{args.program} {args.command}: {printable(why)}", file=sys.stderr)
    return 1


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
