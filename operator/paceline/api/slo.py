"""The latencies that an answer must meet to count as a good one (goodput)."""

from paceline import core
from paceline.api.by_name import duration, duration_text
from paceline.api.model import Model
from paceline.api.rules import Rule
from paceline.api.types import Duration


class SloSpec(Model):
    """Latencies of one request. Requests that meet them count for goodput, which is reported; the gate does not judge
    it."""

    rules = (Rule(cel="has(self.ttft) || has(self.itl)", message="ttft, itl or both must be set"),)

    ttft: Duration | None = None
    """Time to the first token, such as 500ms."""
    itl: Duration | None = None
    """Mean time per output token after the first (vLLM: tpot, AIPerf: inter_token_latency)."""


def to_slo(spec: SloSpec | None) -> core.Slo | None:
    return core.Slo(ttft=_seconds(spec.ttft), itl=_seconds(spec.itl)) if spec else None


def from_slo(slo: core.Slo | None) -> dict[str, str] | None:
    """In one form, however it was written: the fingerprint is taken of it."""
    if slo is None:
        return None
    times = {"ttft": slo.ttft, "itl": slo.itl}
    return {name: duration_text(time) for name, time in times.items() if time is not None}


def _seconds(text: str | None) -> float | None:
    return None if text is None else duration(text).total_seconds()
