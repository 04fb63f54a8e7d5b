"""`paceline validate FILE…`: what the API server would refuse, and why, without one."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.api import Problem, problems
from paceline.api.problems import is_ours
from paceline.core import DeploymentSpec, RunSpec
from paceline.engines import places

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
        epilog="Each problem on a line: FILE: spec.path: message. Documents of other kinds are passed over. "
        "Exit: 0 if nothing is wrong, 1 otherwise.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON, any number of documents; - for stdin")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how problems are printed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    found = [(file, problem) for file in args.files for problem in check(file)]
    if args.output == "json":
        entries = [{"file": file, "path": problem.path, "message": problem.message} for file, problem in found]
        print(json.dumps(entries, indent=2))
    else:
        for file, problem in found:
            print(f"{file}: {problem}")
    return 1 if found else 0


def check(file: str) -> Iterator[Problem]:
    """The problems of all our documents in a file; what cannot be read is one, too."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        documents = list(yaml.load_all(text, Loader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        yield Problem(path="", message=" ".join(str(error).split()))
        return
    for document in documents:
        if is_ours(document):
            found = problems(document)
            yield from found or _refused(document)


def _refused(document: Mapping[str, Any]) -> Iterator[Problem]:
    """What the engine would not take, of a manifest that the API server would."""
    spec = READ[document["kind"]](document)
    for refusal in places.refused(spec, document["spec"]):
        yield Problem(path=refusal.path, message=refusal.message)
