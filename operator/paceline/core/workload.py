"""What a server is measured on."""

from dataclasses import dataclass

BUILTIN = "builtin://"
"""What the source of a dataset begins with that is part of Paceline."""
HUB = "hf://datasets/"
"""What the source of a dataset begins with that the prefetch brings."""

WAVES = 5
"""Requests of a closed loop, in multiples of its concurrency, of which its steady window is right to 0.5 % (0025)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Prompts and how many of them are sent. `source` is builtin://NAME, configMap://NAME/KEY, pvc://CLAIM/PATH or
    hf://datasets/OWNER/NAME/PATH."""

    name: str
    source: str
    requests: int
    max_tokens: int
    weight: float = 1.0
    rate: float | None = None
    """Requests a second, arriving as they would from people who do not know of each other (Poisson), however many are
    under way by then. None: the next one is sent when one is answered."""
    temperature: float | None = 0.0
    """What each request asks for. None: nothing, so the server's own default applies."""
    revision: str = "main"
    commit: str | None = None
    """Of a dataset of the hub, as of a model: `commit` is known once the prefetch has resolved the revision."""

    @property
    def of_the_hub(self) -> bool:
        return self.source.startswith(HUB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A dataset at a concurrency or, if it has one, at its rate: the unit of comparison.

    At a rate, `concurrency` is how many requests warm a server up.
    """

    dataset: Dataset
    concurrency: int

    @property
    def name(self) -> str:
        return workload_name(self.dataset.name, self.concurrency, self.rate)

    @property
    def rate(self) -> float | None:
        return self.dataset.rate

    @property
    def weight(self) -> float:
        return self.dataset.weight


def workload_name(dataset: str, concurrency: int, rate: float | None) -> str:
    """`code@32`: 32 requests at a time; `code@8/s`: 8 requests a second."""
    return f"{dataset}@{rate:g}/s" if rate else f"{dataset}@{concurrency}"
