"""Options of several subcommands."""

import argparse
import re

DURATION = re.compile(r"(?=.)([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?")
UNITS = {"h": 3600, "m": 60, "s": 1}


def add_kubectls(parser: argparse.ArgumentParser) -> None:
    """Which cluster and namespace, as kubectl is told."""
    parser.add_argument("-n", "--namespace", help="namespace to look in")
    parser.add_argument("--kubeconfig", metavar="FILE", help="[$KUBECONFIG, ~/.kube/config]")
    parser.add_argument("--context", help="context of the kubeconfig")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("json",), help="machine-readable, with the names of status")


def seconds(text: str) -> int:
    """Type of an option that takes a duration."""
    if not DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text}: must be a duration in h, m and s, such as 2h or 1h30m")
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"([0-9]+)([hms])", text))
