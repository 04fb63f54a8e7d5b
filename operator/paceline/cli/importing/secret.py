"""Which variables and flags are secret, and how to print them."""

import re
from collections.abc import Mapping
from typing import Any

_SECRET = re.compile(
    r"(^|[_-])((API|AUTH|ACCESS)?(TOKEN|KEY)|SECRET|PASS(WORD|WD|PHRASE)?|PWD|CREDENTIALS?)$", re.IGNORECASE
)
"""Names of variables and flags with secret values."""
MASK = "…"


def is_secret(name: str) -> bool:
    return bool(_SECRET.search(name))


def without_secret_value(variable: Mapping[str, Any]) -> str:
    """A variable's value or source, without a secret."""
    if "valueFrom" in variable:
        return str(dict(variable["valueFrom"]))
    return MASK if is_secret(str(variable["name"])) else str(variable.get("value", ""))
