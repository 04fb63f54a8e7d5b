"""`paceline crds`: the CustomResourceDefinitions."""

import argparse
import sys
from pathlib import Path

from paceline.api.crd import files
from paceline.api.reference import reference


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "crds",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-d", "--directory", type=Path, help="write one file per kind into this directory instead")
    form.add_argument("--reference", action="store_true", help="print the field reference as Markdown instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.reference:
        sys.stdout.write(reference())
        return 0
    if args.directory is None:
        sys.stdout.write("---\n".join(files().values()))
        return 0
    args.directory.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (args.directory / name).write_text(text)
    return 0
