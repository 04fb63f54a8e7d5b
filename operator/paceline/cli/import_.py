"""`paceline import`: convert Deployments of SGLang or vLLM, from a file or a cluster, to SpeculativeDeployments."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from paceline.api.text import documents
from paceline.cli import options
from paceline.cli.importing.arguments import NODES
from paceline.cli.importing.hidden import masked
from paceline.cli.importing.resource import Imported, Options, imported, starts_an_engine
from paceline.cli.render import Plain
from paceline.cli.validate import read_file
from paceline.core.text import error_text, printable
from paceline.engines.importing import Note, UnansweredError

if TYPE_CHECKING:
    from paceline.kube import Transport

_KINDS = {**dict.fromkeys(("pod", "pods", "po"), "Pod"),
          **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment")}  # fmt: skip
RUNNING = re.compile(rf"({'|'.join(_KINDS)})/([a-z0-9][a-z0-9.-]*)")
"""An object in the cluster. A file with such a name is written ./pod/NAME."""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "import",
        epilog="Reads the output of `kubectl get deployment NAME -o yaml`, also a List or several documents. For "
        "pod/NAME and deployment/NAME it reads the Deployment in the cluster, and the running engine's "
        "arguments by exec, with your own rights (get and create of pods/exec). A comment above the resource "
        "lists what is changed or not carried over. Exit: 0; 1 if there is no such Deployment, if an option "
        "has to add what it lacks, or if `paceline validate` refuses the result.",
    )
    options.add_file(
        parser, "YAML or JSON, any number of documents; - for stdin; or pod/NAME, deployment/NAME of a cluster"
    )
    options.add_kubectls(parser)
    parser.add_argument("-c", "--container", metavar="NAME", help="the engine's container, if there are several")
    parser.add_argument("--name", default="", help="name of the resource (default: the Deployment's)")
    parser.add_argument("--pool", default="main", help="name of its pool (default: main)")
    parser.add_argument("--engine-version", default="", metavar="V", help="the engine's release in the image")
    parser.add_argument("--product", default="", help="the nodes' accelerator, a value of nvidia.com/gpu.product")
    parser.add_argument("--gpus", type=_count, metavar="N", help="accelerators of a server")
    parser.add_argument(
        "--target", default="", metavar="SOURCE", help="the model: hf://OWNER/NAME, pvc://CLAIM/PATH or oci://…"
    )
    parser.add_argument("--served-name", default="", metavar="NAME", help="the name that clients ask for")
    parser.add_argument("--head", default="", metavar="SOURCE", help="another draft head to compare")
    parser.add_argument("--algorithm", default="EAGLE3", help="the head's algorithm (default: EAGLE3)")
    parser.add_argument("--api-key-secret", default="", metavar="NAME/KEY", help="the Secret with the clients' key")
    parser.add_argument("--cache-claim", default="", metavar="NAME", help="an existing claim for the models")
    parser.add_argument("--cache-size", default="", metavar="SIZE", help="size of the new claim for the models")
    parser.add_argument(
        "--concurrency", type=_levels, default=(), metavar="N,N", help="requests at a time to measure (default: 1,16)"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="keep the Deployment's replicas, and do not suspend: for a cluster where the Deployment does not run",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if RUNNING.fullmatch(args.file):
        from paceline.cli.live import command  # a file needs no cluster client

        return command.run(_running, args)
    try:
        given = read_file(args.file)
        found = list(_deployments(given))
        engines = [one for one in found if starts_an_engine(one)]
    except yaml.YAMLError as error:
        helm = "it looks like a Helm template: helm template … | paceline import -"
        return _failed(args.file, helm if "{{" in given else " ".join(str(error).split()))
    except (OSError, ValueError, RecursionError) as error:
        return _failed(args.file, error_text(error))
    except (AttributeError, KeyError, TypeError) as error:
        return _failed(args.file, f"has a Deployment that is not as kubectl prints it: {error_text(error)}")
    if not engines:
        others = ", ".join(sorted({str(one.get("kind")) for one in documents(given)} - {"Deployment"}))
        kinds = "no Deployment" + (f", only {others}; {NODES}" if others else "")
        kinds = "no Deployment whose command starts an engine" if found else kinds
        return _failed(args.file, f"has {kinds}; docs/migration.md says which commands are known")
    if args.name and len(engines) > 1:
        return _failed(args.file, f"has {len(engines)} such Deployments, and --name can name only one")
    return _print(engines, args)


async def _running(api: "Transport", namespace: str, args: argparse.Namespace) -> int:
    from paceline.cli.importing.running import running

    kind, _, name = args.file.partition("/")
    deployment, notes = await running(api, namespace, _KINDS[kind], name, args.container)
    return _print([deployment], args, notes)


def _print(engines: Sequence[Mapping[str, Any]], args: argparse.Namespace, notes: Sequence[Note] = ()) -> int:
    chosen = Options(**{field: getattr(args, field) for field in Options.__dataclass_fields__})
    failed, printed = False, list[str]()
    for deployment in engines:
        at = f"{args.file}: Deployment {deployment['metadata']['name']}"
        try:
            outcome = imported(deployment, chosen)
        except UnansweredError as unanswered:
            for line in str(unanswered).splitlines():
                failed = bool(_failed(at, line))
            continue
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # never seen by the API server
            failed = bool(_failed(at, f"is not as kubectl prints it: {masked(repr(error)):.200}"))
            continue
        printed.append(text(deployment, replace(outcome, notes=tuple(dict.fromkeys((*notes, *outcome.notes))))))
        for problem in outcome.problems:
            failed = bool(_failed(at, str(problem)))
    print("---\n".join(printed), end="")
    return 1 if failed else 0


def _failed(where: str, why: str) -> int:
    print(printable(f"{where}: {why}"), file=sys.stderr)
    return 1


def _deployments(text: str) -> Iterator[Mapping[str, Any]]:
    """The Deployments with the fields that `kubectl get` always prints."""
    for one in documents(text):
        is_one = one.get("kind") == "Deployment" and str(one.get("apiVersion", "")).startswith("apps/")
        if is_one and isinstance(one.get("spec"), dict) and isinstance(one.get("metadata"), dict):
            if not isinstance(one["metadata"].get("name"), str):
                raise ValueError("a Deployment has no metadata.name")
            yield one


def text(deployment: Mapping[str, Any], outcome: Imported) -> str:
    """The resource, preceded by comments that a person must read."""
    metadata = deployment["metadata"]
    whole = "/".join(filter(None, (str(metadata.get("namespace", "")), metadata["name"])))
    problems = [f"To do: {problem}" for problem in outcome.problems]
    lines = [f"Imported from Deployment {whole} by `paceline import`.", *problems]
    if outcome.notes:
        lines += ["", "Not carried over, or changed:"]
    lines += [f"* {note}" for note in outcome.notes]
    return "".join(map(_comment, lines)) + yaml.dump(outcome.manifest, Dumper=Plain, sort_keys=False, width=120)


def _comment(line: str) -> str:
    """One comment line of any length, so that a search finds its words."""
    return f"# {printable(' '.join(line.split()))}".rstrip() + "\n"


def _count(text: str) -> int:
    """The `type` of an argparse option."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above zero; got {text}")
    return int(text)


def _levels(text: str) -> tuple[int, ...]:
    """The `type` of an argparse option."""
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"must be comma-separated numbers, such as 1,16; got {text}")
    return tuple(dict.fromkeys(map(int, text.split(","))))
