"""What an answer must meet to count as a good one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Latencies of one request, in seconds; None asks for nothing. `itl` is its mean time per output token after the
    first: `tpot` of vLLM's --goodput, `inter_token_latency` of AIPerf's (0053)."""

    ttft: float | None = None
    itl: float | None = None

    def met(self, ttft: float, itl: float) -> bool:
        """By a request with these times. Bounds are inclusive, as in vLLM and AIPerf."""
        return (self.ttft is None or ttft <= self.ttft) and (self.itl is None or itl <= self.itl)
