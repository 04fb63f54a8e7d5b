"""The `paceline` command: one module a subcommand, each with `add(subparsers)` and `run(args) -> int`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

COMMANDS = ("validate", "render", "plan", "crds", "gate", "datasets", "report", "operator")
"""Modules of this package, imported only when asked for: `paceline validate` must not wait for Kopf."""


PLUGIN = ("report", "gate")
"""Those that are `kubectl paceline …`, too."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the subcommand; 2 for a wrong command line."""
    return _run("paceline", COMMANDS, argv)


def plugin(argv: Sequence[str] | None = None) -> int:
    """`kubectl paceline`: kubectl runs the program kubectl-paceline of the PATH."""
    return _run("kubectl paceline", PLUGIN, argv)


def _run(program: str, commands: Sequence[str], argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    named = [name for name in commands if name in arguments[:1]] or list(commands)
    parser = argparse.ArgumentParser(prog=program, description="Speculative decoding, on measured evidence.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {name: importlib.import_module(f"paceline.cli.{name}") for name in named}
    for module in modules.values():
        module.add(subparsers)
    args = parser.parse_args(arguments)
    code: int = modules[args.command].run(args)
    return code
