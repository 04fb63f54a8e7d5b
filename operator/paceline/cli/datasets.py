"""`paceline datasets`: show and export the built-in prompts."""

import json
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path

from paceline.pods import datasets


def add(subparsers: "_SubParsersAction[ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "datasets",
    )
    actions = parser.add_subparsers(dest="action", metavar="list|export")
    actions.add_parser("list", help="list names and sizes")
    export = actions.add_parser("export", help="write one as ShareGPT JSON")
    export.add_argument("name", choices=datasets.NAMES)
    export.add_argument("-o", "--output", metavar="F", default="-", help="file to write (default: standard output)")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    match args.action:
        case "list" | None:
            print(f"{'NAME':<10} {'PROMPTS':>7}")
            for name in datasets.NAMES:
                print(f"{name:<10} {len(datasets.load_dataset(name)):>7}")
        case "export":
            text = json.dumps(datasets.sharegpt(args.name), ensure_ascii=False, indent=1) + "\n"
            if args.output == "-":
                sys.stdout.write(text)
            else:
                Path(args.output).write_text(text, encoding="utf-8")
    return 0
