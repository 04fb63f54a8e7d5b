"""What vLLM's structured outputs do not do once it speculates."""

import json
from collections.abc import Iterator

from paceline.core import Arm, Server
from paceline.engines.vllm import flags

ENFORCER = "lm-format-enforcer"
CONFIG, OLDER = "--structured-outputs-config", "--guided-decoding-backend"
INSTEAD = "xgrammar"


def enforcer(server: Server, arms: tuple[Arm, ...]) -> Iterator[tuple[str | None, str, str]]:
    """Every structured request would fail: a draft may have to be taken back, which this backend cannot."""
    drafting = next((arm.name for arm in arms if arm.draft), None)
    for one in flags.given(server.engine.args) if drafting else ():
        if _backend(one) == ENFORCER:
            message = f"{one.written} names {ENFORCER}, which does not go with drafts, and {drafting} has them"
            yield None, f"engine.args[{one.index}]", f"{message}; write {INSTEAD}, or leave it out"


def _backend(one: flags.Given) -> str:
    if one.name == OLDER or one.written.replace("_", "-") == f"{CONFIG}.backend":
        return one.value or ""
    if one.name != CONFIG or "." in one.written:
        return ""
    try:
        said = json.loads(one.value or "")
    except ValueError:
        return ""
    return str(said.get("backend", "")) if isinstance(said, dict) else ""
