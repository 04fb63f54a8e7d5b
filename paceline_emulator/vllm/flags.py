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


UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def human_readable_int(text: str) -> int:
    """`32k` is 32000, `1.5k` 1500, `32K` 32768 (`utils/argparse_utils.py:30`)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip())
    if found is None:
        return int(text)
    number, suffix = found.groups()
    if suffix.islower():
        return int(float(number) * UNITS[suffix])
    if "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {suffix}. Did you mean to use "
            f"{number}{suffix.lower()} instead?"
        )
    return int(number) * UNITS[suffix]


def human_readable_int_or_auto(text: str) -> int:
    return -1 if text.strip().lower() in ("auto", "-1") else human_readable_int(text)


def loads(text: str) -> Any:
    """`engine/arg_utils.py:161`: the type is named as Python shows it."""
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {json.loads}.") from None


def an_object(text: str) -> Any:
    """A part of the configuration, read by pydantic at once; of its keys no more is known than CHOICES."""
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"1 validation error\n  Invalid JSON: {problem} [type=json_invalid]") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"Input should be an object [type=dataclass_type, input_value={text!r}]")
    for key, value in found.items():
        if key in CHOICES and value not in CHOICES[key]:
            raise argparse.ArgumentTypeError(f"1 validation error\n{key}\n  Input should be one of {CHOICES[key]}")
    return found


CHOICES = {"backend": ("auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"), "mode": (0, 1, 2, 3)}
"""Key of a part of the configuration → its values: of structured outputs, and of compilation."""


TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "json": loads,
    "object": an_object,
    "folded": lambda text: text.lower().replace("-", "_"),
    "count": human_readable_int,
    "context": human_readable_int_or_auto,
}


def optional(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """`engine/arg_utils.py:173`."""

    def read(text: str) -> Any:
        if text in ("", "None"):
            return None
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {kind}.") from None

    return read


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Destination → value, of `serve MODEL …`. Leaves with exit 2 where argparse does."""
    parser = argparse.ArgumentParser(prog="vllm")
    add_options(parser.add_subparsers(required=True, metavar="{serve}").add_parser("serve"))
    parsed = vars(parser.parse_args(_plain(argv)))
    for adapter in parsed["lora_modules"] or ():
        if "=" not in adapter and not _is_json(adapter):  # entrypoints/common/cli_args.py, LoRAParserAction
            parser.error(f"Invalid JSON format for --lora-modules: {adapter}")
    return parsed


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def add_options(serve: argparse.ArgumentParser) -> None:
    for flag in json.loads((files(__package__) / "data" / FLAGS_FILE).read_text())["flags"]:
        serve.add_argument(*flag["names"], **_options(flag))


def _options(flag: dict[str, Any]) -> dict[str, Any]:
    """add_argument's keywords for one entry of the list."""
    common: dict[str, Any] = {"default": flag.get("default"), "help": argparse.SUPPRESS}
    if flag["kind"] == "switch":
        return {**common, "action": _Switch, "nargs": 0}
    may_be_none = flag.get("optional", False)
    kept = {"choices": [*flag["choices"], *([None] if may_be_none else [])]} if "choices" in flag else {}
    kept |= {"nargs": flag["many"]} if "many" in flag else {}
    kind = TYPES[flag["kind"]]
    return {**common, **kept, "type": optional(kind) if may_be_none else kind}


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
