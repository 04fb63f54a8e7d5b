"""The `paceline` command: one module a subcommand, each with `add(subparsers)` and `run(args) -> int`."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

FILES = ("validate", "render", "plan", "measure", "crds", "gate", "search", "datasets", "report", "operator")
"""Subcommands on files, and what the operator's pod runs."""
LIVE = ("status", "watch", "why", "history", "top")
"""Subcommands on a deployment in a cluster."""
REQUESTS = ("promote", "promote-anyway", "abort", "retry", "rollback")
"""Subcommands by which a person asks for something."""
COMMANDS: Mapping[str, str] = {name: name for name in (*FILES, *LIVE)} | {
    "import": "import_",
    **dict.fromkeys(REQUESTS, "ask"),
}
"""Subcommand → module of this package, imported only when asked for: `paceline validate` must not wait for Kopf."""
PLUGIN: Mapping[str, str] = {name: COMMANDS[name] for name in (*LIVE, *REQUESTS, "gate", "report")}
"""Those that are `kubectl paceline …`, too."""


CLOSED_PIPE = 141
"""Exit code where the reader has gone, as a shell tells SIGPIPE."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the subcommand; 2 for a wrong command line."""
    return _run("paceline", COMMANDS, argv)


def plugin(argv: Sequence[str] | None = None) -> int:
    """`kubectl paceline`: kubectl runs the program kubectl-paceline of the PATH."""
    return _run("kubectl paceline", PLUGIN, argv)


def _run(program: str, commands: Mapping[str, str], argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    named = [commands[name] for name in arguments[:1] if name in commands] or commands.values()
    parser = argparse.ArgumentParser(prog=program, description="Speculative decoding, on measured evidence.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {name: importlib.import_module(f"paceline.cli.{name}") for name in dict.fromkeys(named)}
    for module in modules.values():
        module.add(subparsers)
    args = parser.parse_args(arguments)
    args.program = program
    try:
        code: int = modules[commands[args.command]].run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # `paceline plan FILE | head`; Python would try to flush once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return code
