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
from paceline.core import DeploymentSpec, RunSpec
from paceline.engines import places

DEEPEST = 100
SUFFIXES = (".json", ".yaml", ".yml")
READ: Mapping[str, Callable[[Mapping[str, Any]], DeploymentSpec | RunSpec]] = {
    "SpeculativeDeployment": api.deployment,
    "BenchmarkRun": api.run,
}


class Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: no dates, and a key that stands twice is an error."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        if twice := next((key for i, key in enumerate(keys) if key in keys[:i]), None):
            raise yaml.constructor.ConstructorError(None, None, f"{twice} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "validate",
        help="check manifests without a cluster",
        epilog="Prints one problem per line, as FILE: spec.path: message. Ignores documents of other kinds. "
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
        yield from ((name, problem) for problem in _of_file(name, models))
        return
    paths = sorted(path for path in Path(name).glob("**/*" if recursive else "*") if path.suffix in SUFFIXES)
    if not paths:
        yield name, Problem(path="", message=f"has no file that ends in {', '.join(SUFFIXES)}")
    for path in paths:
        yield from ((str(path), problem) for problem in _of_file(str(path), models))


def _of_file(file: str, models: Path | None) -> Iterator[Problem]:
    """What cannot be read is a problem, too."""
    try:
        text = read(file)
    except (OSError, ValueError) as error:
        yield Problem(path="", message=" ".join(str(error).split()))
    else:
        yield from of_text(text, models)


def read(file: str) -> str:
    """The text of a file, or of stdin for `-`. Raises OSError, and ValueError if it is not text."""
    return sys.stdin.read() if file == "-" else Path(file).read_text()


def of_text(text: str, models: Path | None = None) -> Iterator[Problem]:
    """The problems of all our documents; what is no YAML is one."""
    try:
        documents = [document for document in of_yaml(text) for document in items(document)]
        ours = [document for document in documents if is_ours(document)]
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


def of_yaml(text: str) -> list[Any]:
    """The documents of a text. Raises yaml.YAMLError, and ValueError for one that is nested too deep."""
    _refuse_depth(text)
    return list(yaml.load_all(text, Loader))


def _refuse_depth(text: str) -> None:
    """The parser written in C would end the whole process."""
    depth = 0
    for event in yaml.parse(text, Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"is nested deeper than {DEEPEST}")


def items(document: Any) -> list[Any]:
    """Those of a List, as `kubectl get -o yaml` prints it."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]
