"""Parses limits in an argument list."""

import re
from collections.abc import Collection, Iterable, Mapping

from paceline.engines.adapter import Bound
from paceline.engines.arguments import ParsedFlag

_SUFFIXES: Mapping[str, int] = {
    "": 1, "k": 1000, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "t": 10**12, "T": 2**40,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
"""Suffix → factor, as vLLM reads them (utils/argparse_utils.py: k is 1000, K is 1024). SGLang reads M, G and T as
decimal, so its numbers are smaller than here."""
COPIES = frozenset({"--dp-size", "--data-parallel-size", "--attn-dp-size"})
"""Some limits hold per copy of the model, some for all copies: the larger interpretation is used."""


def bounds(
    parsed_flags: Iterable[ParsedFlag], kinds: Mapping[str, str], auto: Collection[str] = ()
) -> Mapping[str, Bound]:
    """Kind → bound; `kinds` maps a flag's name to its kind. A value that is not a number sets no bound, nor does
    `auto`, the engine's word for "as many as fit". A number below 1 is a bound that admits nothing."""
    listed = list(parsed_flags)
    copies = max((1, *(parse_number(parsed.value) or 1 for parsed in listed if {parsed.name, parsed.written} & COPIES)))
    return {
        kind: Bound(path=f"{parsed.path}[{parsed.index}]", flag=text, most=most * (1 if kind == "context" else copies))
        for parsed in listed
        if (kind := kinds.get(parsed.name))
        and (text := f"{parsed.name}={parsed.value}") not in auto
        and (most := parse_number(parsed.value)) is not None
    }


def parse_number(text: str) -> int | None:
    """`8192`, `8k`, `8Ki`, `-1`; None for any other text."""
    parts = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)([kKmMgGtT]i?)?", text)
    unit = _SUFFIXES.get(parts[2] or "") if parts else None
    return int(float(parts[1]) * unit) if parts and unit else None
