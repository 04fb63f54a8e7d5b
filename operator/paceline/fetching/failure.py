"""Why a prefetch failed, and its termination message: a first line of JSON for the planner, then a sentence for people,
which `kubectl describe pod` shows."""

import json
from dataclasses import dataclass
from typing import Literal, cast, get_args

ModelPart = Literal["source", "revision"]
"""The field of a model or dataset that a person must change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailure:
    """`source`: the model or dataset that could not be fetched; "" if the failure does not concern one."""

    sentence: str
    source: str = ""
    part: ModelPart = "source"

    def to_message(self) -> str:
        """One line, or two if there is a source. The caller bounds the length: only the sentence may be cut."""
        if not self.source:
            return self.sentence
        return f"{json.dumps({'source': self.source, 'part': self.part})}\n{self.sentence}"

    @classmethod
    def from_message(cls, text: str) -> "FetchFailure":
        """The inverse. A message without such a first line (of an older release, or of a container that ended without
        writing one) is only a sentence."""
        first, _, rest = text.partition("\n")
        try:
            facts = json.loads(first)
            source, part = facts["source"], facts["part"]
        except (KeyError, TypeError, ValueError, RecursionError):
            return cls(sentence=text)
        known = isinstance(source, str) and part in get_args(ModelPart)
        return cls(sentence=rest, source=source, part=cast("ModelPart", part)) if known else cls(sentence=rest)
