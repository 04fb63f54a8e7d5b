"""SGLang's known releases: their paths and counters. Source: their wheels, read; 0.5.23 also run.

A release that is not in the table is treated like the newest one before it; one between two of them gets the benefit of
the doubt. Its flags, EAGLE3 targets (`flags_by_release`) and algorithms (`moved_arguments`) are known all the same. A
release newer than all may have added anything: for it we refuse only known mistakes."""

from dataclasses import dataclass

from paceline.engines.release import release

EAGLE_FAMILY = ("EAGLE", "EAGLE3", "NEXTN", "MTP")
"""Algorithms with a trained head or with the target's own layers; SGLang runs NEXTN and MTP as EAGLE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRelease:
    """A release whose wheel was read.

    `paged_trees` are the attention backends that verify a tree on pages of more than one token. `ready` and `info` are
    paths, of which the former takes up to `ready_seconds` to answer; `verify_calls` and `retractions` are counters
    among its metrics. `absent_arguments` are compared arguments that it lacks; `own_temperature` as in a `Probe`.
    """

    version: str
    algorithms: frozenset[str]
    adaptive: bool
    paged_trees: tuple[str, ...]
    ready: str
    ready_seconds: int
    info: str
    verify_calls: str | None = None
    retractions: str | None = None
    absent_arguments: tuple[str, ...] = ()
    own_temperature: float | None = None
    histogram: bool = False
    """Whether an answer can include acceptance by position (`return_spec_tokens_details`)."""
    adapters: bool = False
    """Whether its syntax for adapters was read (`openai/serving_base.py:40`)."""
    ended: str = "sglang:num_requests_total"
    """The counter of unaborted requests that had a step of several tokens; if there is none, the counter of all
    requests."""


KNOWN = (
    KnownRelease(
        version="0.4.5",
        algorithms=frozenset(EAGLE_FAMILY),
        adaptive=False,
        paged_trees=(),  # a page of more than one token turns a tree into a chain; only the log says so
        ready="/health",
        ready_seconds=2,
        info="/get_server_info",
        absent_arguments=(
            "prefill_attention_backend",
            "decode_attention_backend",
            "moe_runner_backend",
            "moe_a2a_backend",
        ),
        own_temperature=0.7,  # openai_api/protocol.py:331: the model's values are not read
    ),
    KnownRelease(
        version="0.5.6",
        algorithms=frozenset((*EAGLE_FAMILY, "STANDALONE", "NGRAM")),
        adaptive=False,
        paged_trees=("flashinfer", "fa3"),
        ready="/health",
        ready_seconds=5,  # it generates a token and never takes less than a second
        info="/server_info",
        retractions="sglang:num_retractions_sum",
    ),
    KnownRelease(
        version="0.5.17",
        algorithms=frozenset((*EAGLE_FAMILY, "STANDALONE", "NGRAM", "DFLASH", "DSPARK")),
        adaptive=True,
        paged_trees=("flashinfer", "fa3", "triton"),
        ready="/health",
        ready_seconds=5,
        info="/server_info",
        retractions="sglang:num_retracted_requests_total",
        verify_calls="sglang:spec_verify_calls_total",
        adapters=True,
    ),
    KnownRelease(
        version="0.5.23",
        algorithms=frozenset((*EAGLE_FAMILY, "STANDALONE", "NGRAM", "DFLASH", "DSPARK")),
        adaptive=True,
        paged_trees=("flashinfer", "fa3", "triton"),
        ready="/ready",
        ready_seconds=2,
        info="/server_info",
        retractions="sglang:num_retracted_requests_total",
        verify_calls="sglang:spec_verify_calls_total",
        histogram=True,
        adapters=True,
        ended="sglang:request_time_per_output_token_seconds_count",
    ),
)


def known_release(version: str) -> KnownRelease:
    """The newest known release that is not newer than `version`; the newest of all if `version` is not one."""
    number = release(version)
    older = [row for row in KNOWN if number is None or _number(row) <= number]
    return older[-1] if older else KNOWN[0]


def neighbouring_releases(version: str) -> tuple[KnownRelease, ...]:
    """The known releases as which a version may behave: itself, or its neighbours."""
    number, row = release(version), known_release(version)
    if number is None or _number(row) >= number:
        return (row,)
    return (row, *KNOWN[KNOWN.index(row) + 1 :][:1])


def is_newer(version: str) -> bool:
    """Whether a version is newer than all known releases."""
    number = release(version)
    return number is not None and number > _number(KNOWN[-1])


def is_older(version: str) -> bool:
    """Whether a version is older than all known releases."""
    number = release(version)
    return number is not None and number < _number(KNOWN[0])


def _number(row: KnownRelease) -> tuple[int, ...]:
    number = release(row.version)
    assert number
    return number
