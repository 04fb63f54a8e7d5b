"""Types of JSON and YAML objects."""

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, that its owner may change."""
Object = Mapping[str, Any]
"""The same, read-only."""
Scalar = str | int | float | bool | None
