"""`paceline completion SHELL`, and the program that kubectl runs to complete `kubectl paceline …`."""

import argparse
import importlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from paceline import cli

_NEEDS = "completion needs shtab: pip install shtab"
NO_FILES = 4
"""The last line that kubectl expects of kubectl_complete-NAME: cobra's ShellCompDirectiveNoFileComp, which offers no
files."""
KUBECTL_SECONDS = 3.0

_NOTES = """\
bash: source <(paceline completion bash)
zsh:  paceline completion zsh >"${fpath[1]}/_paceline"
`kubectl paceline` is completed by the program kubectl_complete-paceline, which kubectl finds on the PATH.
"""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("completion", epilog=_NOTES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError as error:
        print(f"paceline completion: {_NEEDS} ({error})", file=sys.stderr)
        return 1
    parser = _whole("paceline", cli.COMMANDS)
    _completes_files(parser, shtab.FILE)
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _whole(program: str, commands: Mapping[str, cli.Subcommand]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program)
    subparsers = parser.add_subparsers(dest="command", action=cli._Parsers)
    for module in dict.fromkeys(command.module for command in commands.values()):
        importlib.import_module(f"paceline.cli.{module}").add(subparsers)
    return parser


def _completes_files(parser: argparse.ArgumentParser, complete: Any) -> None:
    """Completes file names for each argument with free text: most of them are files."""
    for subparsers in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        for command in subparsers.choices.values():
            for action in command._actions:
                if action.nargs != 0 and not action.choices:
                    action.complete = complete
            _completes_files(command, complete)


def kubectl() -> int:
    """Prints the candidates for the last word, one per line, then kubectl's directive."""
    *before, last = sys.argv[1:] or [""]
    for word in _candidates(before, last):
        if word.startswith(last):
            print(word)
    print(f":{NO_FILES}")
    return 0


def _candidates(before: list[str], last: str) -> list[str]:
    if not before:
        return list(cli.PLUGIN)
    if before[0] not in cli.PLUGIN:
        return []
    if last.startswith("-"):
        subparsers = cli.parsers("kubectl paceline")
        importlib.import_module(f"paceline.cli.{cli.PLUGIN[before[0]].module}").add(subparsers)
        return [option for action in subparsers.choices[before[0]]._actions for option in action.option_strings]
    namespace = next((before[i : i + 2] for i, word in enumerate(before) if word in ("-n", "--namespace")), [])
    asked = ["kubectl", "get", "specdep", "-o", "name", *namespace]
    try:
        names = subprocess.run(asked, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [name.rpartition("/")[2] for name in names.split()]
