"""How a pool's datasets are sent: at concurrencies, at a rate, or on a ramp."""

import math
from typing import Annotated

from pydantic import Field

from paceline import core
from paceline.api.model import SchemaModel
from paceline.api.rules import Rule, one_of
from paceline.core import WAVES
from paceline.core.types import AMOUNT, DatasetName, Matches, Unique

MOST_CONCURRENT = 4096
Concurrency = Annotated[int, Field(ge=1, le=MOST_CONCURRENT)]
Rate = Annotated[
    str,
    Field(max_length=12),
    Matches(
        AMOUNT,
        "be a decimal string from '0.001' to '999999.999', such as '8'; to replay the arrivals of a log write its "
        "mean rate, and arrivals: Replayed",
    ),
]
RATE_RULE = Rule(
    cel="!has(self.arrivals) || self.arrivals != 'Replayed' || has(self.requestRate)",
    message="requestRate must be set if arrivals is Replayed: arrivals are scaled to this mean rate",
    field=".requestRate",
)


class RampSpec(SchemaModel):
    """Requests under way rise from one number to another, and fall back."""

    rules = (
        Rule(
            cel="self.from < self.to",
            message="from must be below to = {self.to}, to which the ramp rises; got {self.from}",
            field=".from",
        ),
    )

    from_: Annotated[int, Field(ge=1, le=MOST_CONCURRENT - 1, alias="from")]
    """Requests under way at the beginning and at the end."""
    to: Annotated[int, Field(ge=2, le=MOST_CONCURRENT)]
    """Requests under way in the middle."""


class LoadSpec(SchemaModel):
    """One kind of load, and the datasets that are measured under it."""

    rules = (
        one_of("concurrency", "requestRate", "ramp"),
        RATE_RULE,
        Rule(
            cel="!has(self.maxConcurrency) || has(self.requestRate)",
            message="maxConcurrency must be left out without requestRate: other loads set how many run at once",
            field=".maxConcurrency",
        ),
    )

    concurrency: Annotated[tuple[Concurrency, ...], Field(min_length=1, max_length=8), Unique()] | None = None
    """Closed loops, each with this constant number of requests under way. The gate compares throughput."""
    request_rate: Rate | None = None
    """Mean arrivals per second, independent of the requests under way. The gate compares the speed of a request, not
    throughput."""
    arrivals: core.Arrivals | None = None
    """Random (the default), or Replayed: in the pattern of the `timestamp` of the file's entries, scaled to the mean
    rate requestRate."""
    max_concurrency: Concurrency | None = None
    """With requestRate: requests that a server takes at a time; if absent, the largest concurrency of other loads."""
    ramp: RampSpec | None = None
    """Requests under way rise and fall as requests are sent. The gate compares the speed of a request."""
    datasets: Annotated[tuple[DatasetName, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Names of the datasets that are measured under this load; all if absent."""

    @property
    def largest(self) -> int:
        """The most concurrent requests that the load names; else 0."""
        return max((*(self.concurrency or ()), self.ramp.to if self.ramp else 0, self.max_concurrency or 0))


def overlap(one: str, other: str) -> str:
    """CEL: two loads of a pool have a dataset in common."""
    return f"(!has({one}.datasets) || !has({other}.datasets) || {one}.datasets.exists(d, d in {other}.datasets))"


MOST_REQUESTS = 100_000
LEAST_SECONDS, GOOD_SECONDS = 20, 60
"""How many seconds requests must arrive at least, and do by default. In the first seconds, and after the last request
was sent, fewer requests are under way than in between. In a simulation of published speeds 64 requests at 8/s (8 s)
showed a ratio of 1.85 and kept 63 % of the rate; 512 requests showed 2.00."""


def lasting(seconds: int, rate: float) -> int:
    """Requests that arrive in this time."""
    return math.ceil(seconds * rate - 1e-6)


def arriving(seconds: int, load: str) -> str:
    """CEL: requests that arrive in this time, rounded as in `lasting`."""
    return f"int({seconds}.0 * double({load}.requestRate) + 0.999999)"


def lasts(prompts: str, load: str) -> str:
    """CEL: the dataset's requests arrive for long enough. The field's own rule refuses malformed rates."""
    return (
        f"!has({load}.requestRate) || !{load}.requestRate.matches(r'{AMOUNT}')"
        f" || double({requests_rule(prompts)}) >= {LEAST_SECONDS}.0 * double({load}.requestRate) - 0.000001"
    )


def requests_rule(prompts: str) -> str:
    """CEL: the dataset's `requests`, else the maximum."""
    return f"(has({prompts}.requests) ? {prompts}.requests : {MOST_REQUESTS})"


def turns_fit(prompts: str, load: str) -> str:
    """CEL: the conversations of `turns` fill a load's concurrencies with as many requests as a load may have."""
    return f"(has({load}.concurrency) && {load}.concurrency.max() * {prompts}.turns <= {MOST_REQUESTS // WAVES})"


OF_TURNS = (
    f"concurrency must be set, and at most {MOST_REQUESTS // WAVES} / turns, for a dataset with turns: each request "
    "waits for the answer before it"
)
TOO_SHORT = f"requests must arrive for at least {LEAST_SECONDS} seconds at requestRate, or most of it is ramp and drain"
