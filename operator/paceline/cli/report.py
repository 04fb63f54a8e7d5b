"""`paceline report NAME…`: runs and deployments as one self-contained page, as Markdown or as JSON."""

import argparse
import sys
from pathlib import Path

from paceline.cli import options, report_source
from paceline.cli.live import report_page
from paceline.report import FORMATS, Report, build_report, runs
from paceline.report.classes import prompt_routing

_WRITERS = {**FORMATS, "routing": prompt_routing}
"""Format → its writer: the report's, and a file for a router."""

_NEEDS = "HTML needs jinja2 and matplotlib: pip install jinja2 matplotlib; -o report.md and -o report.json do not"


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        description="Write a deployment with its runs, or single BenchmarkRuns, as one self-contained HTML page, as "
        "Markdown or as JSON.",
        epilog="kubectl get specdep,bench,benchround -o json | paceline report - -o report.html",
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="a BenchmarkRun or a SpeculativeDeployment in the cluster (bench/NAME or specdep/NAME if both "
        "exist), a YAML or JSON file with either (lists too), or - for stdin",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="report.html",
        metavar="FILE",
        help="file to write; html, md, json or - for stdout [report.html]",
    )
    parser.add_argument(
        "--format",
        choices=tuple(_WRITERS),
        help="output format (default: by FILE's ending, else html); routing: the best tree of each dataset, as JSON",
    )
    parser.add_argument("--title", default="", help="title of the page")
    parser.add_argument(
        "--live",
        type=options.seconds,
        default=5,
        metavar="DURATION",
        help="time between two readings of a deployment's servers in the cluster; 0s reads none [5s]",
    )
    options.add_kubectls(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        write = _WRITERS[args.format or _ending(args.output)]
        text = write(_report(args))
        if args.output in ("-", *FORMATS):
            print(text)
        else:
            Path(args.output).write_text(text, encoding="utf-8")
    except ImportError as error:
        print(f"paceline report: {_NEEDS} ({error})", file=sys.stderr)
        return 1
    except report_source.UNREPORTABLE as error:
        return report_source.cannot_be_written("report", args.names, error)
    return 0


def _report(args: argparse.Namespace) -> Report:
    """Deployments with their relevant runs, then the runs that were named."""
    found = report_source.read_sources(args.names, args)
    manifests, deployments = [], []
    for one in found.deployments:
        told = report_page.page(
            one.deployment, runs(one.runs), one.runs,
            revisions=one.revisions, traffic=one.traffic, unread=one.unread,
        )  # fmt: skip
        by_name = {run["metadata"]["name"]: run for run in one.runs}
        manifests += [by_name[name] for name in report_page.shown_runs(told, by_name)]
        deployments.append(told)
    return build_report([*manifests, *found.runs], args.title, deployments)


def _ending(output: str) -> str:
    ending = Path(output).suffix.removeprefix(".") or (output if output in FORMATS else "")
    if output == "-" or ending in ("html", "htm"):
        return "html"
    if ending not in FORMATS:
        raise ValueError(f"{output}: must end in {', '.join('.' + name for name in FORMATS)}, or set --format")
    return ending
