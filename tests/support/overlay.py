"""The example and what the demo lays over it: no GPU, minutes instead of hours."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "qwen3-coder-next.yaml"
OVERLAY = ROOT / "tests" / "demo" / "overlay.yaml"


def merged(under: Any, over: Any) -> Any:
    """JSON merge patch (RFC 7396) without deletion."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return under | {key: merged(under.get(key), value) for key, value in over.items()}
