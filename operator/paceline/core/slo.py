"""The latencies that an answer must meet to count as a good one (goodput)."""

from paceline.core.model import model
from paceline.core.types import Seconds


@model
class Slo:
    """Latencies of one request. Requests that meet them count for goodput, which is reported; the gate does not judge
    it."""

    ttft: Seconds | None = None
    """Time to the first token, such as 500ms."""
    itl: Seconds | None = None
    """Mean time per output token after the first (vLLM: tpot, AIPerf: inter_token_latency)."""

    def met(self, ttft: float, itl: float) -> bool:
        """Whether a request with these times, in seconds, meets the limits. Bounds are inclusive, as in vLLM and
        AIPerf."""
        return (self.ttft is None or ttft <= self.ttft) and (self.itl is None or itl <= self.itl)
