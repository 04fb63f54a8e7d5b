"""Acceptance by position for an engine that reports it in answers, not for the server (SGLang).

The client of a load does not request it. So after a measured load, some of its prompts are sent again, all at once,
with that request. They are not measured: the server's counters have been read before.
"""

from collections.abc import Sequence

SAMPLES = 8
"""Number of prompts. With 256 tokens each there are some 700 verify calls at 3 tokens per call: a fraction is off by at
most 2 % (one standard error)."""
TOKENS = 256
"""Tokens per answer, or the workload's maxTokens if smaller: the sample takes seconds."""
SECONDS = 120.0
"""Time limit for all answers together; if it is exceeded, there is no acceptance by position. At 5 tokens per second
each, the answers take 51 seconds, and a slower server also exceeds its load's timeout (`core.Timeouts`)."""


def by_position(histograms: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Fraction of verify calls that accepted the draft token of each position. Item n of a histogram is how many calls
    accepted n draft tokens; empty if there was no call."""
    calls = sum(map(sum, histograms))
    if not calls:
        return ()
    longest = max(map(len, histograms))
    reached = [sum(sum(one[position:]) for one in histograms) for position in range(1, longest)]
    return tuple(count / calls for count in reached if count)
