"""`paceline report RUN…`: BenchmarkRuns as one self-contained page, or as Markdown or JSON."""

import argparse
import sys
from pathlib import Path

from paceline.cli import options, report_source
from paceline.kube import ApiError
from paceline.report import FORMATS, report

NEEDS = "HTML needs jinja2 and matplotlib: pip install 'paceline[report]'; -o report.md and -o report.json do not"

ODD = (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What comes of a file whose fields have other types than the API server lets in: a report believes them."""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        help="write BenchmarkRuns as one HTML page, Markdown or JSON",
        description="Write BenchmarkRuns as one self-contained HTML page, as Markdown or as JSON.",
        epilog="kubectl get bench -o json | paceline report - -o report.html",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="file of YAML or JSON (lists too), or - for stdin; otherwise the name of a BenchmarkRun in the cluster, "
        "or of a SpeculativeDeployment for the latest run of each pool (bench/NAME or specdep/NAME if both exist)",
    )
    parser.add_argument(
        "-o", "--output", default="report.html", metavar="FILE", help="file to write, - for stdout [report.html]"
    )
    parser.add_argument("--format", choices=tuple(FORMATS), help="output format (default: by FILE's ending, else html)")
    parser.add_argument("--title", default="", help="title of the page")
    options.add_kubectls(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        write = FORMATS[args.format or _ending(args.output)]
        text = write(report(report_source.read(args.runs, args), args.title))
        if args.output == "-":
            print(text)
        else:
            Path(args.output).write_text(text, encoding="utf-8")
    except ImportError as error:
        print(f"paceline report: {NEEDS} ({error})", file=sys.stderr)
        return 1
    except (OSError, ValueError, ApiError) as error:
        print(f"paceline report: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except ODD as error:
        why = f"{', '.join(args.runs)}: holds a value that no BenchmarkRun of the API server has ({error!r:.200})"
        print(f"paceline report: {why}; `paceline validate` names it", file=sys.stderr)
        return 1
    return 0


def _ending(output: str) -> str:
    ending = Path(output).suffix.removeprefix(".")
    if output == "-" or ending in ("html", "htm"):
        return "html"
    if ending not in FORMATS:
        raise ValueError(f"{output}: must end in {', '.join('.' + name for name in FORMATS)}, or say --format")
    return ending
