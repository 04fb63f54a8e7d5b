"""The variables of a server's environment as SGLang reads them.

A release takes `SGL_X` for `SGLANG_X`, whatever X is, and lets the older name win: environ.py:366 of 0.5.6, :579 of
0.5.10, :2298 of 0.5.23 (in 0.5.3 already; 0.4.5 reads each by its own name, and no rule asks for one there).
"""

from collections.abc import Mapping
from typing import Any

from paceline.core import Server

OLDER, NEWER = "SGL_", "SGLANG_"


def variable(server: Server, name: str) -> Mapping[str, Any] | None:
    """The entry that decides what SGLang reads as `name`, which begins with SGLANG_; None where it is not said."""
    said = {str(one["name"]): one for one in server.engine.env}
    return said.get(OLDER + name.removeprefix(NEWER)) or said.get(name)
