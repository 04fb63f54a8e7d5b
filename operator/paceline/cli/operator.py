"""`paceline operator`: the process in the operator's pod."""

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
    """Returns 0 after a stop signal, 1 if the Lease was lost."""
    settings = from_environment()
    logs("debug" if args.verbose else settings.log_level, settings.log_format)
    goes_directly()
    from paceline.controller.shell import run as work

    return work(settings)


def goes_directly() -> None:
    """Removes proxy variables: the operator reaches the API server, pods and Prometheus directly. The API's client
    reads variables that a webhook of the cluster may add, and their exceptions do not support address ranges."""
    for name in [name for name in os.environ if name.lower() in _PROXIES]:
        del os.environ[name]
        logging.getLogger(__name__).info("%s is not used: the operator speaks only to the cluster", name)


def logs(level: str, form: str) -> None:
    """`form`: text, or json, which is Kopf's format: one object per line with timestamp, severity and message."""
    if form == "json":
        kopf.configure(log_format=kopf.LogFormat.JSON)
    else:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger().setLevel(level.upper())
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
