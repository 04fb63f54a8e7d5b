"""Resolved arguments of a server: those that may be published, and where an arm differs from the baseline.

All of them are compared, flattened to names and values (`cuda_graph_config.decode.max_bs`), except those that the
round's plan lists as moved, which speculation changes by itself. Secrets are neither stored, hashed nor compared.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import canonical
from paceline.core.manifest import Scalar
from paceline.engines import ENGINES

_SECRET = re.compile(r"key|secret|password|token(?!iz)", re.IGNORECASE)
"""Names that may hold a secret if their value is text; numbers may be published (`max_prefill_tokens`)."""
VOLATILE = frozenset({"launch_command", "internal_states", "startup_time", "status", "env_vars"})
"""Arguments whose values differ between processes, or repeat secrets."""
MOST = 8
"""Maximum number of differences that a replicate reports."""
LONGEST_VALUE_SHOWN = 60
"""Maximum number of characters of a reported value."""
_ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Difference:
    """An argument that differs from the baseline's, with both values as text; "—" for a value that a server does not
    report."""

    name: str
    value: str
    baseline: str

    def __str__(self) -> str:
        return f"{self.name} is {self.value}, but {self.baseline} on the baseline"


def pick(resolved: Mapping[str, Any], watched: tuple[str, ...]) -> dict[str, Scalar]:
    """The watched values of a server's resolved arguments."""
    return {
        key: resolved[key]
        for key in watched
        if key in resolved and _is_scalar(value := resolved[key]) and _may_publish(key, value)
    }


def publishable(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved arguments that may be published and do not differ between processes."""
    return {key: value for key, value in resolved.items() if key not in VOLATILE and _may_publish(key, value)}


def comparable(resolved: Mapping[str, Any], moved: Sequence[str]) -> dict[str, str]:
    """Name → value as JSON, for all arguments that must be equal on all arms. A name in `moved` covers all names below
    it; a name ending in an asterisk covers all names with its prefix."""
    flat = dict(_flat(publishable(resolved), ""))
    return {name: value for name, value in sorted(flat.items()) if not any(_covers(pattern, name) for pattern in moved)}


def arguments_digest(arguments: Mapping[str, str]) -> str:
    """The first 8 hex digits of the SHA-256 of comparable arguments."""
    return canonical.digest(arguments, 8)


def differences(
    arm: Mapping[str, str], baseline: Mapping[str, str], held: Collection[str] = ()
) -> tuple[Difference, ...]:
    """All differences: of arguments in `held` first, then the version, of arguments that both have, and of those that
    only one has; each in order of name."""
    names = sorted(name for name in arm.keys() | baseline.keys() if arm.get(name) != baseline.get(name))
    both = arm.keys() & baseline.keys()
    names.sort(key=lambda name: (name not in held, name != "version", name not in both))
    return tuple(Difference(name, _shown(arm.get(name)), _shown(baseline.get(name))) for name in names)


def in_common(engine: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """What engines of all types report, by a common name (`Adapter.common`). An unset one says nothing: some engines
    leave unset what a checkpoint decides, and others report it."""
    names = ENGINES[engine].common
    return {common: value for common, own in names.items() if (value := arguments.get(own, "null")) != "null"}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            below = f"{name}.{key}" if name else str(key)
            if _may_publish(str(key), inner):
                yield from _flat(inner, below)
    else:
        yield name, json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def _covers(moved: str, name: str) -> bool:
    return name.startswith(moved[:-1]) if moved.endswith("*") else name == moved or name.startswith(f"{moved}.")


def _may_publish(name: str, value: Any) -> bool:
    """False for text, and for values that may contain text, under a name that looks like a secret's."""
    return not _SECRET.search(name) or (_is_scalar(value) and not isinstance(value, str))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, int | float | str)


def _shown(value: str | None) -> str:
    text = _ABSENT if value is None else value.strip('"') or value
    return text if len(text) <= LONGEST_VALUE_SHOWN else f"{text[: LONGEST_VALUE_SHOWN - 1]}…"
