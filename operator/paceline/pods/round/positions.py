"""Acceptance by position of an engine that tells it with an answer, and not of the server (SGLang).

The client of a load does not ask for it. So after a measured load, some of its prompts are sent again, all
at once, and the answers ask for it. They are not measured: the server's counters have been read before.
"""

from collections.abc import Sequence

SAMPLES = 8
"""Prompts. With 256 tokens of each there are some 700 verify calls at 3 tokens a call: a fraction is off by 2 % (one
standard error) at most."""
TOKENS = 256
"""Of an answer, or the workload's maxTokens if that is fewer: the sample takes seconds."""
SECONDS = 120.0
"""For all answers together; without them there is no acceptance by position. At 5 tokens per second each they take 51,
and a server that is slower than that is late with its load too (`core.Timeouts`)."""


def by_position(histograms: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Fraction of verify calls that accepted the draft token of each position. The n-th number of a histogram is how
    many calls accepted n draft tokens; empty if there was no call."""
    calls = sum(map(sum, histograms))
    if not calls:
        return ()
    longest = max(map(len, histograms))
    reached = [sum(sum(one[position:]) for one in histograms) for position in range(1, longest)]
    return tuple(count / calls for count in reached if count)
