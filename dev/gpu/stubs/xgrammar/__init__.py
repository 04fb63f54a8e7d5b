"""Stub: two function-call detectors import names of it; with --grammar-backend none nothing of it runs.

StructuralTag is Any, which pydantic accepts as a field's type. get_model_structural_tag is left out: its import is
guarded."""

from typing import Any as StructuralTag  # noqa: F401
