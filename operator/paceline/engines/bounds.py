"""Limits in an argument list, as numbers."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from paceline.engines.adapter import Bound

SUFFIXES: Mapping[str, int] = {
    "": 1, "k": 1000, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "t": 10**12, "T": 2**40,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
"""Of vLLM (utils/argparse_utils.py: k is 1000, K is 1024). SGLang's M, G and T are decimal: less than is taken here."""
COPIES = ("--dp-size", "--data-parallel-size", "--attn-dp-size", "-dp")
"""Some limits are of each copy of the model, some of all together: the larger is taken."""

Word = tuple[int, str, str | None]
"""A flag in an argument list: where it stands, its name, and its value."""


def words(args: Sequence[str]) -> Iterator[Word]:
    """As argparse reads `--flag=value` and `--flag value`."""
    for index, argument in enumerate(args):
        name, equals, value = argument.partition("=")
        if name.startswith("-"):
            yield index, name, value if equals else next(iter(args[index + 1 : index + 2]), None)


def found(words: Iterable[Word], flags: Mapping[str, str], auto: Collection[str] = ()) -> Mapping[str, Bound]:
    """By kind; `flags` is a flag's name → the kind. What is no number bounds nothing, nor does `auto`: what this engine
    takes for "as many as there is room for". A number below 1 lets nothing through, and is a bound all the same."""
    listed = list(words)
    copies = max((1, *(number(value) or 1 for _, name, value in listed if name in COPIES)))
    return {
        kind: Bound(path=f"engine.args[{index}]", flag=f"{name}={value}", most=most * each)
        for index, name, value in listed
        if (kind := flags.get(name)) and f"{name}={value}" not in auto and (most := number(value)) is not None
        for each in (1 if kind == "context" else copies,)
    }


def number(text: str | None) -> int | None:
    """`8192`, `8k`, `8Ki`, `-1`; None for anything else, and for nothing at all."""
    if (
        not (read := re.fullmatch(r"([+-]?\d+(?:\.\d+)?)([kKmMgGtT]i?)?", text or ""))
        or (read[2] or "") not in SUFFIXES
    ):
        return None
    return int(float(read[1]) * SUFFIXES[read[2] or ""])
