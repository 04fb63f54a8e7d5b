"""`paceline report RUN…`: BenchmarkRuns as one self-contained HTML page. Everything it needs is in the manifests."""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import yaml

from paceline.cli.report_view import Manifest, view
from paceline.cli.validate import Loader

EMULATED = "The engine was emulated: these are not measurements"


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        help="write BenchmarkRuns as one HTML page",
        description="Write BenchmarkRuns as one self-contained HTML page.",
        epilog="kubectl get bench -o json | paceline report - -o report.html",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="YAML or JSON, lists too; - for stdin")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="- for stdout [report.html]")
    parser.add_argument("--title", help="of the page")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        runs = [manifest for file in args.runs for manifest in read(file)]
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(f"paceline report: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    if not runs:
        print(f"paceline report: no BenchmarkRun in {', '.join(args.runs)}", file=sys.stderr)
        return 1
    html = page(runs, args.title or ", ".join(sorted({manifest["spec"]["target"]["servedName"] for manifest in runs})))
    if args.output == "-":
        print(html)
    else:
        Path(args.output).write_text(html, encoding="utf-8")
    return 0


def read(file: str) -> list[Manifest]:
    """The BenchmarkRuns of a file, those of a List too; other kinds are passed over."""
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    documents = [json.loads(text)] if text.lstrip().startswith("{") else yaml.load_all(text, Loader)
    objects = [
        item for document in documents if isinstance(document, dict) for item in document.get("items", [document])
    ]
    return [item for item in objects if item.get("kind") == "BenchmarkRun"]


def page(runs: Sequence[Manifest], title: str) -> str:
    """One HTML document, without anything that is fetched."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("paceline.cli") / "templates" / "report.html.j2").read_text("utf-8"))
    views = [view(manifest) for manifest in runs]
    return template.render(title=title, runs=views, banner=EMULATED if any(v.emulated for v in views) else "")
