"""How the rows of the table of wrong resources are told in short: name, changes to a good resource, path."""

from typing import Any

from tests.support.edits import GONE, Change

FIRST, SECOND = "spec.candidates.0", "spec.candidates.1"
"""wide of the pool latency, narrow of the pool throughput."""
FIRST_OF_VLLM = "spec.candidates[0]"


def tree(steps: int, top_k: int, tokens: int) -> dict[str, int]:
    return {"numSteps": steps, "topK": top_k, "numDraftTokens": tokens}


def falling(*depths: tuple[int, int]) -> list[dict[str, int]]:
    return [{"fromBatchSize": size, "numSteps": steps} for size, steps in depths]


BY_DEFAULT: tuple[Change, ...] = (("spec.candidates", GONE), ("spec.pools.0.candidates", GONE))
"""No candidate is named."""
NGRAM: Change = (f"{SECOND}.draft", {"algorithm": "NGRAM"})
WIDE = {"name": "wide", "tree": tree(3, 4, 8)}

Told = tuple[str, tuple[Change, ...], str]


def one(name: str, path: str, value: Any, blames: str) -> Told:
    return name, ((path, value),), blames
