"""What a server says it runs with: what of it may be told, and where one arm's is not the baseline's.

All resolved arguments are compared, as names and values without structure (`cuda_graph_config.decode.max_bs`), but for
those that the round's plan calls moved: what speculation is known to change by itself. Secrets are neither kept, hashed
nor compared.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.evidence.round_plan import Scalar

SECRET = re.compile(r"key|secret|password|token(?!iz)", re.IGNORECASE)
"""Names of what may be one: all of them if its value is text. Numbers are told (`max_prefill_tokens`)."""
VOLATILE = frozenset({"launch_command", "internal_states", "startup_time", "status", "env_vars"})
"""What differs from process to process, and what repeats secrets."""
MOST = 8
"""Differences that a replicate tells; more are not worth a message's room."""
LONGEST = 60
"""Characters of a value that is told."""
ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Difference:
    """An argument that is not the baseline's; both values as text, "—" where it is not said, "" where a message had no
    room for them."""

    name: str
    value: str
    baseline: str

    def __str__(self) -> str:
        if not self.value:
            return f"{self.name} differs from the baseline's"
        return f"{self.name} is {self.value}, and {self.baseline} on the baseline"


def pick(resolved: Mapping[str, Any], watched: tuple[str, ...]) -> dict[str, Scalar]:
    """The watched values of a server's resolved arguments."""
    return {
        key: resolved[key]
        for key in watched
        if key in resolved and _is_scalar(value := resolved[key]) and _may(key, value)
    }


def without_secrets(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """What may be told of a server's resolved arguments and does not differ from process to process."""
    return {key: value for key, value in resolved.items() if key not in VOLATILE and _may(key, value)}


def comparable(resolved: Mapping[str, Any], moved: Sequence[str]) -> dict[str, str]:
    """Name → value as JSON, of all that must be equal on all arms. A name in `moved` covers what is below it, and one
    that ends in an asterisk all that begins so."""
    flat = dict(_flat(without_secrets(resolved), ""))
    return {name: value for name, value in sorted(flat.items()) if not any(_covers(one, name) for one in moved)}


def digest(arguments: Mapping[str, str]) -> str:
    """The first 8 hex digits of the SHA-256 of comparable arguments."""
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def differences(mine: Mapping[str, str], baseline: Mapping[str, str]) -> tuple[Difference, ...]:
    """The first few, by name."""
    names = sorted(name for name in mine.keys() | baseline.keys() if mine.get(name) != baseline.get(name))
    return tuple(Difference(name, _shown(mine.get(name)), _shown(baseline.get(name))) for name in names[:MOST])


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            below = f"{name}.{key}" if name else str(key)
            if _may(str(key), inner):
                yield from _flat(inner, below)
    else:
        yield name, json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def _covers(moved: str, name: str) -> bool:
    return name.startswith(moved[:-1]) if moved.endswith("*") else name == moved or name.startswith(f"{moved}.")


def _may(name: str, value: Any) -> bool:
    """Whether it is told: no text, nor anything that may hold some, under a name that looks like a secret."""
    return not SECRET.search(name) or (_is_scalar(value) and not isinstance(value, str))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, int | float | str)


def _shown(value: str | None) -> str:
    text = ABSENT if value is None else value.strip('"') or value
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
