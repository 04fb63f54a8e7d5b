"""What a person has to read beside the resource."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SECRET = re.compile(
    r"(^|[_-])((API|AUTH|ACCESS)?(TOKEN|KEY)|SECRET|PASS(WORD|WD|PHRASE)?|PWD|CREDENTIALS?)$", re.IGNORECASE
)
"""Names of variables and flags whose values are nobody's to read."""
HIDDEN = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A thing of the Deployment that is not carried over, or not as it stands there.

    `path` is a field of the Deployment's pod (`containers[engine].env[HF_TOKEN]`) or a flag, `text` says why and what
    """

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class UnansweredError(ValueError):
    """What the Deployment does not say and an option can; a line each."""


def is_secret(name: str) -> bool:
    return bool(SECRET.search(name))


def shown(variable: Mapping[str, Any]) -> str:
    """A variable's value, or where it comes from, without a secret."""
    if "valueFrom" in variable:
        return str(dict(variable["valueFrom"]))
    return HIDDEN if is_secret(str(variable["name"])) else str(variable.get("value", ""))
