"""How long a workload at a rate lasts: requests, over the rate."""

import math
from collections.abc import Iterator
from typing import Any

from paceline.api.model import Finding, Rule
from paceline.api.words import AMOUNT

MOST_REQUESTS = 100_000
LEAST_SECONDS, GOOD_SECONDS = 20, 60
"""For how long requests are to arrive: at least, and where nothing is said. In the first seconds, and once the last has
been sent, there are fewer under way than the rate makes: in a simulation of published speeds 64 requests at 8/s (8 s)
showed a ratio of 1.85 where 512 of them showed 2.00, and kept 63 % of the rate."""

TOO_SHORT = (
    f"requests must arrive for at least {LEAST_SECONDS} seconds at requestRate, or most of it is ramp and drain; "
    f"{GOOD_SECONDS} are better"
)


def lasting(seconds: int, rate: float) -> int:
    """Requests that arrive for so long."""
    return math.ceil(seconds * rate - 1e-6)


def _too_short(prompts: Any) -> Iterator[Finding]:
    if prompts.request_rate is None:
        return
    rate, asked = float(prompts.request_rate), prompts.requests or MOST_REQUESTS
    if asked < (least := lasting(LEAST_SECONDS, rate)):
        numbers = f"at {prompts.request_rate} a second {least}, better {lasting(GOOD_SECONDS, rate)}"
        yield ".requests", f"{TOO_SHORT}: {numbers}; got {asked}"


_ASKED = f"(has(self.requests) ? self.requests : {MOST_REQUESTS})"

LASTS = Rule(
    # What is no rate is told by the field itself.
    cel=f"!has(self.requestRate) || !self.requestRate.matches(r'{AMOUNT}')"
    f" || double({_ASKED}) >= {LEAST_SECONDS}.0 * double(self.requestRate) - 0.000001",
    message=TOO_SHORT,
    field=".requests",
    broken=_too_short,
)
