"""Label selectors as the API server reads them."""

import re
from collections.abc import Callable, Mapping

from paceline.kube import Invalid, Manifest

Labels = Mapping[str, str]

KEY = r"([\w./-]+)"
TERMS: tuple[tuple[str, Callable[[Labels, str, str], bool]], ...] = (
    (rf"{KEY}\s*==?\s*([\w.-]*)", lambda labels, key, value: labels.get(key) == value),
    (rf"{KEY}\s*!=\s*([\w.-]*)", lambda labels, key, value: labels.get(key) != value),
    (rf"{KEY}\s+in\s+\(([^)]*)\)", lambda labels, key, values: labels.get(key) in _split(values)),
    (rf"{KEY}\s+notin\s+\(([^)]*)\)", lambda labels, key, values: labels.get(key) not in _split(values)),
    (rf"!\s*{KEY}()", lambda labels, key, _: key not in labels),
    (rf"{KEY}()", lambda labels, key, _: key in labels),
)
"""Tried in this order."""


def selects(selector: str) -> Callable[[Manifest], bool]:
    """Whether an object is selected. Invalid if the selector cannot be read."""
    terms = [_term(text) for text in re.split(r",(?![^(]*\))", selector) if text.strip()]
    return lambda manifest: all(term(manifest["metadata"].get("labels") or {}) for term in terms)


def _term(text: str) -> Callable[[Labels], bool]:
    for pattern, check in TERMS:
        if found := re.fullmatch(pattern, text.strip()):
            key, value = found.groups()
            return lambda labels: check(labels, key, value)
    raise Invalid(400, "BadRequest", f"unable to parse requirement: {text}")


def _split(values: str) -> list[str]:
    return [value.strip() for value in values.split(",")]
