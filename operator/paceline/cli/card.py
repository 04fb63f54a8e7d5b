"""`paceline card RUN`: the model card of a run's winner, as Markdown."""

import argparse

from paceline.cli import options, report_source
from paceline.report.card import model_card

_NOTES = """\
The card of a Promote has a model-index, which the hub reads. The card of a Reject, of an Inconclusive and of anything
emulated has none: it claims nothing. Exit: 0 printed, 1 no such run, or a run without a verdict.
"""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("card", epilog=_NOTES)
    parser.add_argument(
        "name",
        metavar="RUN",
        help="a BenchmarkRun in the cluster, a file that `paceline measure` has written, or - for stdin",
    )
    options.add_kubectls(parser)
    parser.set_defaults(run=run, live=0)


def run(args: argparse.Namespace) -> int:
    try:
        print(model_card(report_source.only_run(args.name, args)), end="")
    except report_source.UNREPORTABLE as error:
        return report_source.cannot_be_written("card", [args.name], error)
    return 0
