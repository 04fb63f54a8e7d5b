"""`paceline validate FILE…`: what the API server and the engine would refuse, without either."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.api import Problem, problems
from paceline.api.problems import is_ours
from paceline.api.text import documents, items, of_yaml
from paceline.core import DeploymentSpec, RunSpec
from paceline.engines import places

SUFFIXES = (".json", ".yaml", ".yml")
NOTHING = "it has neither a SpeculativeDeployment nor a BenchmarkRun"
READ: Mapping[str, Callable[[Mapping[str, Any]], DeploymentSpec | RunSpec]] = {
    "SpeculativeDeployment": api.deployment,
    "BenchmarkRun": api.run,
}


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "validate",
        help="check manifests without a cluster",
        epilog="Prints one problem per line, as FILE: spec.path: message, and nothing if there is none. Ignores "
        "documents of other kinds; a FILE with nothing else is told on standard error. "
        "Exit: 0 if there are no problems, 1 otherwise.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="YAML or JSON, any number of documents; a directory: its .yaml, .yml and .json files; - for stdin",
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="search directories recursively")
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="run preflight, too, on a hub client's cache or a directory of OWNER/NAME; reads config.json and the "
        "headers of safetensors files",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="output format")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    problems_by_file = [
        (file, problem) for name in args.files for file, problem in check(name, args.recursive, args.models)
    ]
    if args.output == "json":
        entries = [
            {"file": file, "path": problem.path, "message": problem.message} for file, problem in problems_by_file
        ]
        print(json.dumps(entries, indent=2))
    else:
        for file, problem in problems_by_file:
            print(_printable(f"{file}: {problem}"))
    return 1 if problems_by_file else 0


def _printable(line: str) -> str:
    """What a terminal that is not UTF-8 cannot show is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    return line.encode(encoding, "backslashreplace").decode(encoding)


def check(name: str, recursive: bool = False, models: Path | None = None) -> Iterator[tuple[str, Problem]]:
    """The problems of all our documents in a file or in the files of a directory, each with its file."""
    if not Path(name).is_dir():
        yield from ((name, problem) for problem in _of_file(name, models, named=True))
        return
    paths = sorted(path for path in Path(name).glob("**/*" if recursive else "*") if path.suffix in SUFFIXES)
    if not paths:
        yield name, Problem(path="", message=f"has no file that ends in {', '.join(SUFFIXES)}")
    for path in paths:
        yield from ((str(path), problem) for problem in _of_file(str(path), models))


def _of_file(file: str, models: Path | None, named: bool = False) -> Iterator[Problem]:
    """What cannot be read is a problem, too. Of a `named` file it is told if nothing in it was checked."""
    try:
        text = read(file)
    except (OSError, ValueError) as error:
        yield Problem(path="", message=" ".join(str(error).split()))
        return
    found = list(of_text(text, models))
    yield from found
    if named and not found and not any(map(is_ours, documents(text))):
        print(f"{file}: {NOTHING}: nothing in it was checked", file=sys.stderr)


def read(file: str) -> str:
    """The text of a file, or of stdin for `-`. Raises OSError, and ValueError if it is not text."""
    return sys.stdin.read() if file == "-" else Path(file).read_text()


def of_text(text: str, models: Path | None = None) -> Iterator[Problem]:
    """The problems of all our documents; what is no YAML is one."""
    try:
        ours = [one for document in of_yaml(text) for one in items(document) if is_ours(one)]
        for i, document in enumerate(ours):
            where = f" (document {i + 1} of {len(ours)})" if len(ours) > 1 else ""
            yield from (replace(problem, message=problem.message + where) for problem in wrong(document, models))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        yield Problem(path="", message=" ".join(str(error).split()))


def wrong(manifest: Mapping[str, Any], models: Path | None = None) -> list[Problem]:
    """What the API server refuses; else what the engine would; else, given `models`, what preflight would find."""
    if faults := problems(manifest):
        return faults
    spec, written = READ[manifest["kind"]](manifest), manifest["spec"]
    refused = [Problem(path=refusal.path, message=refusal.message) for refusal in places.refused(spec, written)]
    if refused or models is None or isinstance(spec, RunSpec):
        return refused
    from paceline.cli.models import preflight  # takes longer to import than all else here

    return list(preflight(spec, written, models))
