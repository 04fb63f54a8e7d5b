"""The command line of SGLang: the flags that a release has, and argparse's own behaviour for the rest.

The lists are data (`data/flags_*.json`), so that a flag that SGLang does not have is refused here exactly as there:
`usage` and `error: unrecognized arguments` on stderr, exit 2. Prefixes of a flag are accepted if they are unambiguous.
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Any

from paceline_emulator.older import NEWEST

RENAMED = {
    "tensor_parallel_size": "tp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
    "pipeline_parallel_size": "pp_size",
}
"""Destinations in older releases → the names that they all have once parsed."""

SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def human_readable_int(text: str) -> int:
    """`8k` is 8000, `8Ki` is 8192; fractions only with the SI suffixes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)", text.strip())
    if match is None:
        try:
            return int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"Invalid integer value: {text!r}") from None
    number, suffix = match.groups()
    if suffix in SI:
        return int(Decimal(number) * SI[suffix])
    if "." in number:
        raise argparse.ArgumentTypeError(f"Decimals are not allowed with IEC suffixes like {suffix!r}.")
    return int(number) * IEC[suffix]


TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "loads": json.loads,
    "json_list_type": json.loads,
    "parse_cuda_graph_config_arg": json.loads,
    "parse_cuda_graph_backend_arg": str,
    "human_readable_int": human_readable_int,
    "nullable_str": lambda text: None if text in ("", "None") else text,
}


def parser(version: str = NEWEST) -> argparse.ArgumentParser:
    """SGLang's server parser with every flag of the list."""
    made = argparse.ArgumentParser(prog="sglang serve")
    for flag in _listed(version):
        made.add_argument(*_names(flag), **_options(flag))
    return made


def _names(flag: dict[str, Any]) -> list[str]:
    """BooleanOptionalAction makes the --no- names itself, from each that it is given."""
    switch = flag["action"] == "BooleanOptionalAction"
    return [name for name in flag["flags"] if not (switch and name.startswith("--no-"))]


def parse(argv: Sequence[str], version: str = NEWEST) -> dict[str, Any]:
    """Destination → value; what an older release has no flag for has the newest's default. Leaves with exit 2 where
    argparse does.

    `sglang serve MODEL …` takes the model as a first positional; it is turned into the flag.
    """
    words = list(argv)
    if words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    parsed = {RENAMED.get(name, name): value for name, value in vars(parser(version).parse_args(words)).items()}
    return {**{flag["dest"]: flag.get("default") for flag in _listed(NEWEST)}, **parsed}


def arguments(version: str) -> frozenset[str]:
    """What a release calls its arguments once they are parsed."""
    return frozenset(RENAMED.get(flag["dest"], flag["dest"]) for flag in _listed(version))


def _listed(version: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((files(__package__) / "data" / f"flags_{version}.json").read_text())[
        "flags"
    ]
    return listed


def _options(flag: dict[str, Any]) -> dict[str, Any]:
    """add_argument's keywords for one entry of the list."""
    common = {"dest": flag["dest"], "default": flag.get("default"), "help": argparse.SUPPRESS}
    match flag["action"]:
        case "_StoreTrueAction" | "DeprecatedStoreTrueAction":
            return {**common, "action": "store_true"}
        case "BooleanOptionalAction":
            return {**common, "action": argparse.BooleanOptionalAction}
        case "DeprecatedStoreConstAction":
            return {**common, "choices": flag["choices"]}
        case _:
            kept: dict[str, Any] = {key: flag[key] for key in ("nargs", "const", "choices", "required") if key in flag}
            return {**common, **kept, "type": TYPES[flag.get("type", "str")]}
