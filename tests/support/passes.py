"""Reconcile passes as golden files have them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.plan.step import Action, Apply


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One reconcile that did something. `conditions` are those that changed."""

    at: datetime
    after: str
    of: str
    actions: Sequence[str]
    conditions: Mapping[str, str]
    summary: str
    events: Sequence[str]


def story(told: Sequence[Pass]) -> list[dict[str, Any]]:
    """Passes as a golden file has them: what is empty is left out, hashes are numbered in the order of their coming."""
    seen: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"#{len(seen) + 1}")

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\b[0-9a-f]{10}\b", numbered, value)
        if isinstance(value, Mapping):
            return {key: plain(one) for key, one in value.items()}
        return [plain(one) for one in value]

    passes = (
        {
            "at": one.at.strftime("%H:%M"),
            "after": one.after,
            "of": one.of,
            "actions": one.actions,
            "conditions": one.conditions,
            "summary": one.summary,
            "events": one.events,
        }
        for one in told
    )
    return [plain({key: value for key, value in one.items() if value}) for one in passes]


def changed_conditions(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    before, after = (
        {c["type"]: f"{c['status']} {c['reason']}: {c['message']}" for c in status.get("conditions", ())}
        for status in (old, new)
    )
    gone = {kind: "gone" for kind in before if kind not in after}
    return {kind: text for kind, text in after.items() if before.get(kind) != text} | gone


def action_text(action: Action) -> str:
    changed = action.manifest if isinstance(action, Apply) else action.item
    return f"{type(action).__name__} {changed['kind']} {changed['metadata']['name']}: {action.why}"
