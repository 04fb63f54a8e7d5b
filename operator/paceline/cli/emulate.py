"""`paceline emulate …SGLang flags…`: the emulated server."""

import argparse
import sys
from typing import Any

from paceline import emulator


def add(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Everything after `emulate` is the emulated server's own; no prefix character makes it ours."""
    command = subparsers.add_parser(
        "emulate",
        help="an SGLang without a GPU, for demos and tests",
        usage="paceline emulate …SGLang flags…",
        prefix_chars="\0",
        add_help=False,
    )
    command.add_argument("argv", nargs=argparse.REMAINDER)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    sys.stdout.flush()
    return emulator.main(args.argv)
