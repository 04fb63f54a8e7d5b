"""The command line of SGLang 0.5.23: the flags that exist, and argparse's own behaviour for the rest.

The list is data (`data/flags_0.5.23.json`), so that a flag that SGLang does not have is refused here exactly as there:
`usage` and `error: unrecognized arguments` on stderr, exit 2. Prefixes of a flag are accepted if they are unambiguous.
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Any

FLAGS_FILE = "flags_0.5.23.json"

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


def parser() -> argparse.ArgumentParser:
    """SGLang's server parser with every flag of the list."""
    made = argparse.ArgumentParser(prog="sglang serve")
    listed = json.loads((files(__package__) / "data" / FLAGS_FILE).read_text())
    for flag in listed["flags"]:
        made.add_argument(*flag["flags"], **_options(flag))
    return made


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Destination → value. Leaves with exit 2 where argparse does.

    `sglang serve MODEL …` takes the model as a first positional; it is turned into the flag.
    """
    words = list(argv)
    if words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    return vars(parser().parse_args(words))


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
