"""A prefetch's request, result and failure: three codecs that the operator and the prefetch's pod share. No I/O."""

from paceline.fetching.facts import WHOLE_COMMIT, read_facts, write_facts
from paceline.fetching.failure import FetchFailure
from paceline.fetching.request import FETCH_VARIABLE, Artifact, FetchRequest
from paceline.fetching.result import LARGEST_MESSAGE, FetchedModel, FetchResult

__all__ = [
    "FETCH_VARIABLE",
    "LARGEST_MESSAGE",
    "WHOLE_COMMIT",
    "Artifact",
    "FetchFailure",
    "FetchRequest",
    "FetchResult",
    "FetchedModel",
    "read_facts",
    "write_facts",
]
