"""The workloads that a server is measured on."""

from dataclasses import dataclass
from enum import StrEnum

from paceline.core import ramp
from paceline.core.slo import Slo
from paceline.core.source import Scheme, Source

WAVES = 5
"""Requests of a closed loop, as a multiple of its concurrency, for which its steady window is accurate to 0.5 % (0025).
"""


class Arrivals(StrEnum):
    """How requests arrive at a rate: at random, or in the pattern of the file's timestamps."""

    RANDOM = "Random"
    REPLAYED = "Replayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A set of prompts and how to send them. `source` is builtin://NAME, configMap://NAME/KEY, pvc://CLAIM/PATH or
    hf://datasets/OWNER/NAME/PATH."""

    name: str
    source: str
    requests: int
    """Requests of a round; only of the first one if `min_requests` is set."""
    max_tokens: int
    weight: float = 1.0
    rate: float | None = None
    """Requests per second, with Poisson arrivals (an open loop). None: a closed loop, which sends the next request when
    one is answered."""
    temperature: float | None = 0.0
    """The temperature of each request. None sends none, so the server's default applies."""
    ramp_from: int | None = None
    """A ramp: concurrent requests rise from this number to the workload's concurrency, and fall back. None: constant.
    """
    arrivals: Arrivals = Arrivals.RANDOM
    adapter: str = ""
    """The LoRA adapter that requests name; "" for the model itself."""
    response_format: str = ""
    """The `response_format` of each request, as JSON; "" for free text."""
    slo: Slo | None = None
    """Requirements for an answer to count for goodput; None: goodput is not counted."""
    revision: str = "main"
    commit: str | None = None
    """For a dataset of the hub: the commit to which the prefetch resolved the revision."""
    turns: int = 1
    """Most answers of one conversation that are generated one after another; 1: only its last one."""
    min_requests: int | None = None
    """Minimum requests of later rounds: they send as many as the first round's baseline shows to be enough, at most
    `requests`, or more if `requests` is this minimum. None: all rounds send as many."""
    part: int | None = None
    """Prompts from the start of one round's part of the set to the start of the next, in a round with fewer requests
    than the first, or more; None: as many as `requests`."""

    @property
    def stride(self) -> int:
        """Prompts of the set from the first of one round to the first of the next. A round begins with a whole
        conversation, so it may pass over all but one of a conversation's turns."""
        return (self.part or self.requests) + self.turns - 1

    @property
    def address(self) -> Source:
        return Source.parse(self.source)

    @property
    def of_the_hub(self) -> bool:
        """Whether the prefetch downloads it."""
        return self.address.scheme is Scheme.HUB_DATASET


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A dataset at a concurrency, on a ramp or at its request rate: the unit of comparison.

    For a ramp, `concurrency` is its top; at a rate, it is the number of warm-up requests.
    """

    dataset: Dataset
    concurrency: int

    @property
    def name(self) -> str:
        return workload_name(self.dataset.name, self.concurrency, self.rate, self.dataset.ramp_from)

    @property
    def rate(self) -> float | None:
        return self.dataset.rate

    @property
    def levels(self) -> tuple[int, ...]:
        """For a ramp: the number of concurrent requests after each one is sent (`ramp.under_way`); empty otherwise."""
        first = self.dataset.ramp_from
        return () if first is None else ramp.under_way(first, self.concurrency, self.dataset.requests)

    @property
    def at_one_load(self) -> bool:
        """Whether it is a closed loop with constant concurrency: no ramp, and not at a rate."""
        return self.rate is None and self.dataset.ramp_from is None

    @property
    def weight(self) -> float:
        return self.dataset.weight


def fewest_requests(concurrency: int, turns: int | None) -> int:
    """Fewest requests of a closed loop: as many of a conversation's requests as follow one another count as one."""
    return WAVES * concurrency * (turns or 1)


def workload_name(dataset: str, concurrency: int, rate: float | None, ramp_from: int | None = None) -> str:
    """`code@32` has 32 concurrent requests, `code@1-32` one, then more, up to 32, and back to one; `code@8/s` has 8
    requests per second."""
    if ramp_from is not None:
        return f"{dataset}@{ramp_from}-{concurrency}"
    return f"{dataset}@{rate:g}/s" if rate else f"{dataset}@{concurrency}"
