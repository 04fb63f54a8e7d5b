"""Makes the Deployment's speculation a candidate, to be compared with the same server without it."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.engines import ENGINES
from paceline.engines.arguments import ParsedFlag
from paceline.engines.importing import CURRENT, Note, SourceOf, Speculating, UnansweredError

_CHAINS = {"three": 3, "five": 5}
"""Candidates of a head → their depths."""


def read_speculation(
    engine: str, version: str, flags: Sequence[ParsedFlag], place: SourceOf, target: str
) -> Speculating:
    """The speculation that these flags configure. `target` is the model's name in the Deployment."""
    found = ENGINES[engine].importing.speculating(version, flags, place, target)
    if found.draft is None:
        return found
    text = (
        f"becomes the candidate {CURRENT}: the baseline is measured and served without it until it is shown to "
        "be faster"
    )
    return replace(found, notes=(Note(path=found.said, text=text), *found.notes))


def proposed(engine: str, head: str, algorithm: str) -> Speculating:
    """Candidates for a Deployment without speculation, because a resource needs a comparison. They are chains, which
    work with every attention backend. Raises UnansweredError if no algorithm works without a head."""
    if head:
        chains = {name: {"numSteps": steps, "topK": 1, "numDraftTokens": steps + 1} for name, steps in _CHAINS.items()}
        candidates = tuple({"name": name, "tree": shape} for name, shape in chains.items())
        text = "the chains are a start: docs/searching.md shows how to find faster ones"
        return Speculating(
            draft={"algorithm": algorithm, "source": head},
            candidates=candidates,
            notes=(Note(path="candidates", text=text),),
        )
    able = ENGINES[engine].capabilities
    if "NGRAM" not in able.algorithms:
        raise UnansweredError(
            f"a candidate is needed, and every candidate of {engine} needs a head; name one with --head"
        )
    text = "the Deployment does not speculate, and a candidate is needed. NGRAM takes drafts from the text itself "
    text += "and needs no head; --head hf://OWNER/NAME names one for your model"
    candidate = {"name": "ngram", "ngram": {"numDraftTokens": 8, **({"breadth": 1} if able.ngram_breadth else {})}}
    return Speculating(
        draft={"algorithm": "NGRAM"}, candidates=(candidate,), notes=(Note(path="candidates", text=text),)
    )
