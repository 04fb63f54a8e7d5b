"""What a server is measured on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Prompts and how many of them are sent. `source` is `builtin://NAME` (other schemes come with other sources)."""

    name: str
    source: str
    requests: int
    max_tokens: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A dataset at a concurrency: the unit of comparison."""

    dataset: Dataset
    concurrency: int

    @property
    def name(self) -> str:
        return f"{self.dataset.name}@{self.concurrency}"

    @property
    def weight(self) -> float:
        return self.dataset.weight
