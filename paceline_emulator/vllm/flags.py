"""The command line of `vllm serve` 0.33.0: the options that exist, and argparse's own behaviour for the rest.

The list is data, read in the wheel by dev/vllm/extract_flags.py. Underscores are dashes, and `--option.key value` is a
key of a JSON option (`utils/argparse_utils.py:360`).
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any

FLAGS_FILE = "flags_0.33.0.json"


def size(text: str) -> int | str:
    """`32k` is 32000, `32K` is 32768 (`utils/argparse_utils.py`: human_readable_int); `auto` stays."""
    found = re.fullmatch(r"(-?\d+)([kmgtKMGT]?)", text)
    if found is None and text != "auto":
        raise argparse.ArgumentTypeError(f"invalid size: {text!r}")
    if found is None:
        return text
    number, suffix = found.groups()
    thousand, power = 1000 if suffix.islower() else 1024, " kmgt".index(suffix.lower() or " ")
    return int(int(number) * thousand**power)


def loads(text: str) -> Any:
    """`utils/argparse_utils.py`: the type is named as Python shows it."""
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {json.loads}.") from None


TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "json": loads,
    "size": size,
}


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Destination → value, of `serve MODEL …`. Leaves with exit 2 where argparse does."""
    parser = argparse.ArgumentParser(prog="vllm")
    commands = parser.add_subparsers(required=True, metavar="{serve}")
    serve = commands.add_parser("serve")
    for flag in json.loads((files(__package__) / "data" / FLAGS_FILE).read_text())["flags"]:
        serve.add_argument(*flag["names"], **_options(flag))
    return vars(parser.parse_args(_plain(argv)))


def _options(flag: dict[str, Any]) -> dict[str, Any]:
    """add_argument's keywords for one entry of the list."""
    common: dict[str, Any] = {"default": flag.get("default"), "help": argparse.SUPPRESS}
    if flag["kind"] == "switch":
        return {**common, "action": _Switch, "nargs": 0}
    kept = {"choices": flag["choices"]} if "choices" in flag else {}
    kept |= {"nargs": flag["many"]} if "many" in flag else {}
    return {**common, **kept, "type": TYPES[flag["kind"]]}


class _Switch(argparse.Action):
    """On by its own name, off by the names that negate it."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        first, said = self.option_strings[0], option_string or ""
        negated = said.startswith("--no-") or (said.startswith("--disable-") and first.startswith("--enable-"))
        setattr(namespace, self.dest, not negated)


def _plain(argv: Sequence[str]) -> list[str]:
    """Dashes for underscores, and the keys of a JSON option gathered into one value behind the rest."""
    words, gathered = [], dict[str, dict[str, Any]]()
    rest: Iterator[str] = iter(argv)
    for word in rest:
        name, equals, value = word.partition("=")
        if level := re.fullmatch(r"-O=?(\w+)", word):
            words += ["--optimization-level", level[1]]
            continue
        if not name.startswith("--"):
            words.append(word)
            continue
        option, dot, path = name.partition(".")
        option = option.replace("_", "-")
        if dot:
            _put(gathered.setdefault(option, {}), path.split("."), value if equals else next(rest, ""))
        else:
            words.append(f"{option}{equals}{value}")
    return words + [word for option, said in gathered.items() for word in (option, json.dumps(said))]


def _put(said: dict[str, Any], path: list[str], value: str) -> None:
    *outer, last = path
    for key in outer:
        said = said.setdefault(key, {})
    try:
        said[last] = json.loads(value)
    except ValueError:
        said[last] = value
