"""Rules about user limits that a load exceeds: concurrent requests, tokens of one request, tokens of all.

An engine enforces a limit below the load silently, or request by request: a point named @16 would run four at a time,
and hours later all long answers would be refused. We refuse only what certainly does not fit.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from paceline.core import Dataset, Scheme, Server, Workload
from paceline.core.text import count
from paceline.engines import rules
from paceline.engines.adapter import Adapter, Bound
from paceline.engines.refusal import Refusal
from paceline.engines.rules import EngineRule

MOST_CHARACTERS = 6
"""Characters per token, on average over a prompt: more than any tokenizer packs. Counted on the built-in sets with
Mistral's Tekken (131k tokens) and its older vocabulary of 32k: 5.4 at most, 2.2 at least."""
FEWEST_CHARACTERS = 2
"""Characters per token, for a length that certainly suffices."""
LONGEST_PROMPTS = {"code": 752, "swe": 1280, "terminal": 1308, "chat": 486}
"""Characters of the longest prompt of each built-in set, counted in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """A server's limits by kind, and the workloads, the one with most tokens first."""

    bounds: Mapping[str, Bound]
    workloads: Sequence[Workload]


def refusals(adapter: Adapter, server: Server, workloads: Sequence[Workload]) -> tuple[Refusal, ...]:
    heaviest_first = sorted(workloads, key=_all_tokens, reverse=True)
    return rules.refusals(RULES, Loads(bounds=adapter.bounds(server), workloads=heaviest_first))


def _under(kind: str, fault: Callable[[Bound, Workload], str]) -> Callable[[Loads], Iterator[Refusal]]:
    """At most one refusal, for the heaviest load; `fault` is a message with the way out, "" for a load that fits."""

    def check(loads: Loads) -> Iterator[Refusal]:
        if bound := loads.bounds.get(kind):
            faults = (fault(bound, load) for load in loads.workloads)
            yield from (Refusal(path=bound.path, message=message) for message in islice(filter(None, faults), 1))

    return check


def _requests(bound: Bound, load: Workload) -> str:
    if bound.most < 1:
        return f"{bound.flag} admits no request; write at least {load.concurrency}, or leave it out"
    if load.rate is not None or load.concurrency <= bound.most:
        return ""
    return (
        f"{bound.flag} is below the concurrency of {load.name}: it would be measured with {bound.most} at a time; "
        f"write at least {load.concurrency}, or leave it out"
    )


def _context(bound: Bound, load: Workload) -> str:
    if _tokens(load.dataset, MOST_CHARACTERS) <= bound.most:
        return ""
    return (
        f"{bound.flag} is too short for {load.name}: {_of(load.dataset)}; write at least "
        f"{_tokens(load.dataset, FEWEST_CHARACTERS)}{_and_prompts(load.dataset)}, or lower maxTokens"
    )


def _all(bound: Bound, load: Workload) -> str:
    if bound.most > 0 and (load.rate is not None or _all_tokens(load) <= bound.most):
        return ""
    if load.rate is not None:
        return (
            f"{bound.flag} admits no tokens; write at least {_tokens(load.dataset, FEWEST_CHARACTERS)}"
            f"{_and_prompts(load.dataset)} for each request that may be under way, or leave it out"
        )
    return (
        f"{bound.flag} is too few for {load.name}: {count(load.concurrency, 'request')} at a time, {_of(load.dataset)}"
        f"; write at least {load.concurrency * _tokens(load.dataset, FEWEST_CHARACTERS)}{_and_prompts(load.dataset)}, "
        "lower maxTokens or the concurrency, or leave it out"
    )


RULES: tuple[EngineRule[Loads], ...] = (
    EngineRule(
        id="requests-fit",
        check=_under("requests", _requests),
        reason="the rest wait inside the server, so the point is named after a load it did not have",
        source="SGLang 0.5.23 managers/scheduler.py:1241, vLLM 0.33.0 v1/core/sched/scheduler.py:1072",
    ),
    EngineRule(
        id="context-fits",
        check=_under("context", _context),
        reason="a request that may need more tokens is answered with 400",
        source="SGLang 0.5.23 managers/tokenizer_manager.py:1373, vLLM 0.33.0 renderers/base.py:522",
    ),
    EngineRule(
        id="tokens-fit",
        check=_under("tokens", _all),
        reason="fewer requests run at a time, or some are retracted, and a round with retractions is no evidence",
        source="SGLang 0.5.23 managers/scheduler.py:1212",
    ),
)


def _all_tokens(load: Workload) -> int:
    """Minimum tokens of all concurrent requests; at a rate, the tokens of one, because their number is unknown."""
    return (load.concurrency if load.rate is None else 1) * _tokens(load.dataset, MOST_CHARACTERS)


def _tokens(dataset: Dataset, characters: int) -> int:
    """Tokens of the longest request with its answer, at `characters` per token. A prompt of a user's file counts as one
    token; chat templates are not counted."""
    return dataset.max_tokens + max(1, math.ceil(_longest(dataset) / characters))


def _longest(dataset: Dataset) -> int:
    """Characters of the longest prompt; 0 for a user's dataset."""
    return LONGEST_PROMPTS.get(dataset.address.name, 0) if dataset.address.scheme is Scheme.BUILTIN else 0


def _of(dataset: Dataset) -> str:
    if not (longest := _longest(dataset)):
        return f"answers of up to {dataset.max_tokens} tokens, and their prompts"
    prompt = math.ceil(longest / MOST_CHARACTERS)
    return f"answers of up to {dataset.max_tokens} tokens, to prompts of up to {longest} characters ({prompt} or more)"


def _and_prompts(dataset: Dataset) -> str:
    return "" if _longest(dataset) else " and the longest prompt"
