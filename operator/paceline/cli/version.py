"""`paceline version`: print the version."""

import argparse

from paceline import cli


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    subparsers.add_parser("version")


def run(args: argparse.Namespace) -> int:
    print(cli.program_version())
    return 0
