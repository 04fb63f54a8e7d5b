"""`paceline crds`: the CustomResourceDefinitions."""

import argparse
import sys
from pathlib import Path

from paceline.api.crd import crd_files
from paceline.api.reference import reference_page


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
        sys.stdout.write(reference_page())
        return 0
    if args.directory is None:
        sys.stdout.write("---\n".join(crd_files().values()))
        return 0
    args.directory.mkdir(parents=True, exist_ok=True)
    for name, text in crd_files().items():
        (args.directory / name).write_text(text)
    return 0
