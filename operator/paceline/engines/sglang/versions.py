"""What SGLang's releases speak. Source: their wheels, read; 0.5.23 also run.

A release that is not in the table speaks as the newest one before it. What lies between two known releases is given
the benefit of the doubt: flags and EAGLE3 targets of either neighbour pass; which algorithms it has is known (`moves`).
What is newer than all of them may have gained anything, so there only what is known to be wrong is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.engines.release import release

EAGLE_FAMILY = ("EAGLE", "EAGLE3", "NEXTN", "MTP")
"""With a trained head or with layers of the target itself; SGLang runs NEXTN and MTP as EAGLE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaks:
    """One known release.

    `ngram` are the flags of an n-gram drafter's fields, `paged_trees` the attention backends that verify a tree on
    pages of more than one token. `ready` and `info` are pages, the former takes up to `ready_seconds`; `verify_calls`
    and `retractions` are counters among its metrics. `unsaid` are compared arguments that it does not have;
    `own_temperature` as in a `Probe`.
    """

    version: str
    algorithms: frozenset[str]
    adaptive: bool
    ngram: Mapping[str, str]
    paged_trees: tuple[str, ...]
    ready: str
    ready_seconds: int
    info: str
    verify_calls: str | None = None
    retractions: str | None = None
    unsaid: tuple[str, ...] = ()
    own_temperature: float | None = None


NGRAM_SHAPE = {
    "num_draft_tokens": "--speculative-num-draft-tokens",
    "breadth": "--speculative-ngram-max-bfs-breadth",
}
NGRAM_WINDOW = {
    "min_match": "--speculative-ngram-min-match-window-size",
    "max_match": "--speculative-ngram-max-match-window-size",
}

KNOWN = (
    Speaks(
        version="0.4.5",
        algorithms=frozenset(EAGLE_FAMILY),
        adaptive=False,
        ngram={},
        paged_trees=(),  # a page of more than one token turns a tree into a chain, and the log alone says so
        ready="/health",
        ready_seconds=2,
        info="/get_server_info",
        unsaid=("prefill_attention_backend", "decode_attention_backend", "moe_runner_backend", "moe_a2a_backend"),
        own_temperature=0.7,  # openai_api/protocol.py:331: nothing of the model's is read
    ),
    Speaks(
        version="0.5.6",
        algorithms=frozenset((*EAGLE_FAMILY, "STANDALONE", "NGRAM")),
        adaptive=False,
        ngram={**NGRAM_SHAPE, **NGRAM_WINDOW},
        paged_trees=("flashinfer", "fa3"),
        ready="/health",
        ready_seconds=5,  # it generates a token and never takes less than a second
        info="/server_info",
        retractions="sglang:num_retractions_sum",
    ),
    Speaks(
        version="0.5.23",
        algorithms=frozenset((*EAGLE_FAMILY, "STANDALONE", "NGRAM", "DFLASH", "DSPARK")),
        adaptive=True,
        ngram=NGRAM_SHAPE,  # every suffix up to --speculative-ngram-max-trie-depth is looked for
        paged_trees=("flashinfer", "fa3", "triton"),
        ready="/ready",
        ready_seconds=2,
        info="/server_info",
        retractions="sglang:num_retracted_requests_total",
        verify_calls="sglang:spec_verify_calls_total",
    ),
)


def spoken(version: str) -> Speaks:
    """As the newest known release that is not newer; what is no version is taken for the newest."""
    asked = release(version)
    older = [row for row in KNOWN if asked is None or _of(row) <= asked]
    return older[-1] if older else KNOWN[0]


def neighbours(version: str) -> tuple[Speaks, ...]:
    """The known releases that a version may speak as: itself, or the ones before and after it."""
    asked, row = release(version), spoken(version)
    if asked is None or _of(row) >= asked:
        return (row,)
    return (row, *KNOWN[KNOWN.index(row) + 1 :][:1])


def is_newer(version: str) -> bool:
    """Than all that is known."""
    asked = release(version)
    return asked is not None and asked > _of(KNOWN[-1])


def is_older(version: str) -> bool:
    """Than all that is known."""
    asked = release(version)
    return asked is not None and asked < _of(KNOWN[0])


def _of(row: Speaks) -> tuple[int, ...]:
    found = release(row.version)
    assert found
    return found
