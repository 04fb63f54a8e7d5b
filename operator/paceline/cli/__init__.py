"""The `paceline` command. Each subcommand is a module with `add(subparsers)` and `run(args) -> int`."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from typing import Any

from paceline.cli import options


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommand:
    """`module` is imported only when its subcommand runs: `paceline validate` must not wait for Kopf."""

    module: str
    summary: str
    plugin: bool = False
    """Whether `kubectl paceline` has it too."""


DESK = {
    "validate": Subcommand(module="validate", summary="check manifests without a cluster"),
    "render": Subcommand(
        module="render",
        summary="print the objects that serve a SpeculativeDeployment, or a BenchmarkRun's first round, as YAML",
    ),
    "plan": Subcommand(module="plan", summary="forecast what applying a file measures, rolls out and costs"),
    "measure": Subcommand(
        module="measure", summary="measure a pool, or a BenchmarkRun, on this machine; needs no cluster"
    ),
    "import": Subcommand(module="import_", summary="write the resource for your engine's Deployment"),
    "report": Subcommand(
        module="report", summary="write a deployment, or BenchmarkRuns, as one HTML page, Markdown or JSON", plugin=True
    ),
    "card": Subcommand(module="card", summary="print the model card of a run's winner, as Markdown", plugin=True),
    "evidence": Subcommand(
        module="evidence", summary="write a run's verdict as a statement to be signed, or check such a statement"
    ),
    "gate": Subcommand(
        module="gate", summary="judge measurements by the operator's rule, or wait for a verdict", plugin=True
    ),
}
CLUSTER = {
    "status": Subcommand(
        module="status", summary="show the pools of a deployment: what serves, on which evidence", plugin=True
    ),
    "watch": Subcommand(
        module="watch", summary="show `status` live: rounds, the time left and GPU-hours so far", plugin=True
    ),
    "why": Subcommand(
        module="why",
        summary="say in a paragraph what each pool serves, on which evidence, and what would change it",
        plugin=True,
    ),
    "history": Subcommand(module="history", summary="list what each pool has served, and why", plugin=True),
    "top": Subcommand(
        module="top",
        summary="show acceptance and throughput of each pool now, next to what was measured for it",
        plugin=True,
    ),
}
_REQUESTS = {
    "promote": Subcommand(
        module="send_request", summary="serve the winner of the verdict that waits for you", plugin=True
    ),
    "promote-anyway": Subcommand(module="send_request", summary="serve a candidate whatever its verdict", plugin=True),
    "abort": Subcommand(
        module="send_request", summary="stop the run or roll-out that is under way, and hold it", plugin=True
    ),
    "retry": Subcommand(module="send_request", summary="release a hold, and measure again", plugin=True),
    "rollback": Subcommand(
        module="send_request", summary="go back to a revision that has served; measures nothing", plugin=True
    ),
}
OTHERS = {
    "crds": Subcommand(module="crds", summary="print the CustomResourceDefinitions as YAML"),
    "datasets": Subcommand(module="datasets", summary="list or export the built-in prompt sets"),
    "completion": Subcommand(module="completion", summary="print a script that completes commands in a shell"),
    "version": Subcommand(module="version", summary="print the version, also as --version", plugin=True),
}
NOT_LISTED = {"operator": Subcommand(module="operator", summary="run the operator (configured by the chart)")}
COMMAND_GROUPS: Mapping[str, Mapping[str, Subcommand]] = {
    "Files at your desk": DESK,
    "Deployments in a cluster": CLUSTER,
    "Requests to the operator": _REQUESTS,
    "Others": OTHERS,
}
COMMANDS: Mapping[str, Subcommand] = {**DESK, **CLUSTER, **_REQUESTS, **OTHERS, **NOT_LISTED}
PLUGIN: Mapping[str, Subcommand] = {name: command for name, command in COMMANDS.items() if command.plugin}

INTERRUPTED = 130
"""Exit code after Ctrl-C, like a shell's for SIGINT."""
CLOSED_PIPE = 141
"""Exit code after the reader closed the pipe, like a shell's for SIGPIPE."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the subcommand's exit code; 2 for a wrong command line."""
    return _run("paceline", COMMANDS, argv)


def plugin(argv: Sequence[str] | None = None) -> int:
    """`kubectl paceline`: kubectl runs the program kubectl-paceline on the PATH."""
    return _run("kubectl paceline", PLUGIN, argv)


def program_version() -> str:
    return f"paceline {metadata.version('paceline')}"


def _run(program: str, commands: Mapping[str, Subcommand], argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    match arguments[:1]:
        case [] | ["-h"] | ["--help"] | ["help"]:
            print(overview(program, commands))
            return 0 if arguments else 2
        case ["--version"]:
            print(program_version())
            return 0
        case [name] if name not in commands:
            near = get_close_matches(name, commands, n=1)
            hint = f"did you mean {near[0]}?" if near else f"{program} --help lists them"
            print(f"{program}: there is no command {name}; {hint}", file=sys.stderr)
            return 2
    command = commands[arguments[0]]
    subparsers = parsers(program)
    module = importlib.import_module(f"paceline.cli.{command.module}")
    module.add(subparsers)
    parser = subparsers.choices[arguments[0]]
    args = parser.parse_args(arguments[1:])
    args.program, args.command = program, arguments[0]
    if wrong := options.with_filenames(args):
        parser.error(wrong)
    try:
        code: int = module.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `paceline plan FILE | head`; Python would flush once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return code


class _Parsers(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Shows each command's summary at the top of its help, and next to its name in shell completion."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        summary = COMMANDS[name].summary
        settings.setdefault("description", f"{summary[0].upper()}{summary[1:]}.")
        return super().add_parser(name, **{**settings, "help": summary})


def parsers(program: str) -> Any:
    """Returns the object to which subcommands add their parsers."""
    parser = argparse.ArgumentParser(prog=program, description="Speculative decoding, on measured evidence.")
    return parser.add_subparsers(dest="command", required=True, metavar="COMMAND", action=_Parsers)


def overview(program: str, commands: Mapping[str, Subcommand]) -> str:
    """The commands, grouped by purpose."""
    lines = [f"usage: {program} COMMAND …", "", "Speculative decoding, on measured evidence."]
    for title, group in COMMAND_GROUPS.items():
        if shown := {name: command for name, command in group.items() if name in commands}:
            lines += ["", f"{title}:", *(f"  {name:<15} {command.summary}" for name, command in shown.items())]
    return "\n".join([*lines, "", f"{program} COMMAND --help says more, with exit codes."])
