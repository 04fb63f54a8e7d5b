"""What JSON and YAML hold."""

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, that its holder may change."""
Object = Mapping[str, Any]
"""The same, only read."""
Scalar = str | int | float | bool | None
