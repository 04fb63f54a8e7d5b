"""The latencies that an answer must meet to count as a good one (goodput)."""

import re
from typing import Annotated

from pydantic import Field

from paceline import core
from paceline.api.by_name import decimal
from paceline.api.model import Model
from paceline.api.rules import Rule
from paceline.api.types import AMOUNT, Matches

LATENCY = rf"^({AMOUNT.removeprefix('^(').removesuffix(')$')})(ms|s)$"
UNITS = {"ms": 0.001, "s": 1.0}

Latency = Annotated[
    str, Field(max_length=14), Matches(LATENCY, "be a time above zero in ms or s, such as 500ms or 1.5s")
]


class SloSpec(Model):
    """Latencies of one request. Requests that meet them count for goodput, which is reported; the gate does not judge
    it."""

    rules = (Rule(cel="has(self.ttft) || has(self.itl)", message="ttft, itl or both must be set"),)

    ttft: Latency | None = None
    """Time to the first token."""
    itl: Latency | None = None
    """Mean time per output token after the first (vLLM: tpot, AIPerf: inter_token_latency)."""


def to_slo(spec: SloSpec | None) -> core.Slo | None:
    return core.Slo(ttft=_seconds(spec.ttft), itl=_seconds(spec.itl)) if spec else None


def from_slo(slo: core.Slo | None) -> dict[str, str] | None:
    """In one form, however it was written: the fingerprint is taken of it."""
    if slo is None:
        return None
    return {
        name: f"{decimal(1000 * value)}ms"
        for name, value in (("ttft", slo.ttft), ("itl", slo.itl))
        if value is not None
    }


def _seconds(text: str | None) -> float | None:
    found = re.fullmatch(r"([0-9.]+)(ms|s)", text or "")
    return round(float(found[1]) * UNITS[found[2]], 9) if found else None
