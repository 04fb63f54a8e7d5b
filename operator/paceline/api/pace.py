"""How long a workload at a rate lasts: requests, over the rate."""

import math

from paceline.api.rules import Rule
from paceline.api.words import AMOUNT

MOST_REQUESTS = 100_000
LEAST_SECONDS, GOOD_SECONDS = 20, 60
"""For how long requests are to arrive: at least, and where nothing is said. In the first seconds, and once the last has
been sent, there are fewer under way than the rate makes: in a simulation of published speeds 64 requests at 8/s (8 s)
showed a ratio of 1.85 where 512 of them showed 2.00, and kept 63 % of the rate."""


def lasting(seconds: int, rate: float) -> int:
    """Requests that arrive for so long."""
    return math.ceil(seconds * rate - 1e-6)


REQUESTS = f"(has(self.requests) ? self.requests : {MOST_REQUESTS})"


def _arriving(seconds: int) -> str:
    """CEL: requests that arrive for so long, as `lasting` rounds them."""
    return f"int({seconds}.0 * double(self.requestRate) + 0.999999)"


LASTS = Rule(
    # The field itself refuses what is not a rate.
    cel=f"!has(self.requestRate) || !self.requestRate.matches(r'{AMOUNT}')"
    f" || double({REQUESTS}) >= {LEAST_SECONDS}.0 * double(self.requestRate) - 0.000001",
    message=f"requests must arrive for at least {LEAST_SECONDS} seconds at requestRate, or most of it is ramp and "
    f"drain; at {{self.requestRate}} a second {{{_arriving(LEAST_SECONDS)}}}, better {{{_arriving(GOOD_SECONDS)}}}; "
    f"got {{{REQUESTS}}}",
    field=".requests",
)
