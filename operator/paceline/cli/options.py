"""Options shared by several subcommands."""

import argparse
import re

from paceline.core.text import error_text

DURATION = re.compile(r"(?=.)([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?")
EXIT = {"Promote": 0, "Reject": 10, "Inconclusive": 11, "Error": 12}
"""Outcome of a verdict → exit code of `gate` and `measure`."""
_UNITS = {"h": 3600, "m": 60, "s": 1}


def add_file(parser: argparse.ArgumentParser, help: str) -> None:
    """One file, as `FILE` or `-f FILE` like kubectl, in args.file."""
    parser.add_argument("file", nargs="?", metavar="FILE", help=help)
    parser.add_argument("-f", "--filename", dest="filenames", action="append", default=[], help=argparse.SUPPRESS)


def add_files(parser: argparse.ArgumentParser, help: str) -> None:
    """One or more files, as `FILE…` or repeated `-f FILE`, in args.files."""
    parser.add_argument("files", nargs="*", metavar="FILE", help=help)
    parser.add_argument("-f", "--filename", dest="filenames", action="append", default=[], help=argparse.SUPPRESS)


def with_filenames(args: argparse.Namespace) -> str:
    """Moves the values of `-f` to the positional ones. Returns an error message, or ""."""
    if not hasattr(args, "filenames"):
        return ""
    if hasattr(args, "files"):
        args.files = [*args.files, *args.filenames]
        return "" if args.files else "name a FILE"
    named = [*([args.file] if args.file else []), *args.filenames]
    args.file = next(iter(named), None)
    if len(named) > 1:
        return f"takes one FILE; got {', '.join(named)}"
    return "" if named else "name a FILE"


def reason(error: Exception) -> str:
    """Why a file cannot be read, without the file's name."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return error_text(error)


def add_kubectls(parser: argparse.ArgumentParser) -> None:
    """kubectl's options for cluster and namespace."""
    parser.add_argument("-n", "--namespace", help="namespace to look in")
    parser.add_argument("--kubeconfig", metavar="FILE", help="[$KUBECONFIG, ~/.kube/config]")
    parser.add_argument("--context", help="context of the kubeconfig")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("json",), help="machine-readable, with the names of status")


def seconds(text: str) -> int:
    """Type of an option that takes a duration."""
    if not DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text}: must be a duration in h, m and s, such as 2h or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)([hms])", text))
