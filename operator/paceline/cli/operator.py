"""`paceline operator`: what the operator's pod runs."""

import argparse
import logging
import os

import kopf

from paceline.controller.settings import from_environment

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "operator",
    )
    parser.add_argument("--verbose", action="store_true", help="log at DEBUG")


def run(args: argparse.Namespace) -> int:
    """0 when told to stop, 1 when the Lease was lost."""
    settings = from_environment()
    logs("debug" if args.verbose else settings.log_level, settings.log_format)
    goes_directly()
    from paceline.controller.shell import run as work

    return work(settings)


def goes_directly() -> None:
    """No proxy stands between an operator and its API server, pods and Prometheus. The API's client reads variables of
    the environment, which a webhook of the cluster may add, and their exceptions know no ranges of addresses."""
    for name in [name for name in os.environ if name.lower() in _PROXIES]:
        del os.environ[name]
        logging.getLogger(__name__).info("%s is not used: all that the operator speaks to is in the cluster", name)


def logs(level: str, form: str) -> None:
    """`form`: text, or json, Kopf's: one object a line with timestamp, severity and message."""
    if form == "json":
        kopf.configure(log_format=kopf.LogFormat.JSON)
    else:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger().setLevel(level.upper())
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
