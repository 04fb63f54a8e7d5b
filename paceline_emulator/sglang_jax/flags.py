"""The command line: `data/flags_sglang_jax_0.1.0rc0.json`, read off its parsers' source, and argparse's behaviour."""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

VERSION = "0.1.0rc0"
TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "loads": json.loads,
    "nullable_str": lambda text: None if text in ("", "None") else text,
}
SAID_AS = {"tensor_parallel_size": "tp_size", "data_parallel_size": "dp_size"}
"""How the server names two of them in its answers (server_args.py, from_cli_args)."""


@cache
def listed() -> list[dict[str, Any]]:
    path = files("paceline_emulator") / "data" / f"flags_sglang_jax_{VERSION}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["flags"]
    return found


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Field of ServerArgs → value. Leaves with exit 2 where argparse does."""
    made = argparse.ArgumentParser(prog="launch_server.py")
    add_options(made)
    parsed = vars(made.parse_args(list(argv)))
    return {SAID_AS.get(name, name): value for name, value in parsed.items()}


def add_options(made: argparse.ArgumentParser) -> None:
    for flag in listed():
        made.add_argument(*flag["flags"], **_options(flag))


def _options(flag: dict[str, Any]) -> dict[str, Any]:
    """add_argument's keywords for one entry of the list."""
    common: dict[str, Any] = {"dest": flag["dest"], "help": argparse.SUPPRESS}
    match flag.get("action"):
        case "BooleanOptionalAction":
            return {**common, "action": argparse.BooleanOptionalAction, "default": flag.get("default", False)}
        case "store_true" | "store_false" as action:
            return {**common, "action": action, "default": flag.get("default", action == "store_false")}
        case _:
            kept: dict[str, Any] = {
                key: flag[key] for key in ("nargs", "choices", "required", "default") if key in flag
            }
            return {**common, **kept, "type": TYPES[flag.get("type", "str")]}
