"""`paceline operator`: what the operator's pod runs."""

import argparse
import logging

import kopf

from paceline.controller.settings import from_environment


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("operator", help="run the operator (configured by the chart, through environment)")
    parser.add_argument("--verbose", action="store_true", help="log at DEBUG")


def run(args: argparse.Namespace) -> int:
    """0 when told to stop, 1 when the Lease was lost."""
    settings = from_environment()
    logs("debug" if args.verbose else settings.log_level, settings.log_format)
    from paceline.controller.shell import run as work

    return work(settings)


def logs(level: str, form: str) -> None:
    """`form`: text, or json, Kopf's: one object a line with timestamp, severity and message."""
    if form == "json":
        kopf.configure(log_format=kopf.LogFormat.JSON)
    else:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger().setLevel(level.upper())
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
