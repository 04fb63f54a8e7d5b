"""`paceline operator`: what the operator's pod runs."""

import argparse
import logging

from paceline.controller.settings import from_environment


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("operator", help="run the operator (configured by the chart, through environment)")
    parser.add_argument("--verbose", action="store_true", help="log at DEBUG")


def run(args: argparse.Namespace) -> int:
    """0 when told to stop, 1 when the Lease was lost."""
    logging.basicConfig(
        level=logging.DEBUG if args.verbose else logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("kopf").setLevel(logging.WARNING)
    from paceline.controller.shell import run as work

    return work(from_environment())
