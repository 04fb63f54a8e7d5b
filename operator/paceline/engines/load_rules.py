"""Whether the user's own limits let a load through: requests at a time, tokens of one request, tokens of all.

A limit below the load is kept in silence, or request by request: a point named @16 would run four at a time, and hours
later the answers that are too long are all refused. What is refused here is certain; what may just not fit is let pass.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from paceline.core import Dataset, Server, Workload
from paceline.engines.adapter import Adapter, Bound, Refusal

BUILTIN = "builtin://"
MOST_CHARACTERS = 6
"""To a token, on average over a prompt: more than any tokenizer packs. Counted on the built-in sets with Mistral's
Tekken (131k tokens) and its older vocabulary of 32k: 5.4 at most, 2.2 at least."""
FEWEST_CHARACTERS = 2
"""To a token, for a length that is certain to do."""
LONGEST = {"code": 752, "swe": 1280, "terminal": 1308, "chat": 486}
"""Characters of the longest prompt of each built-in set, counted in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`reason` is what would happen otherwise, `source` where that was read. `broken` gives message and way out, of one
    load under one limit of the kind `limits`; "" where it fits."""

    id: str
    limits: str
    reason: str
    source: str
    broken: Callable[[Bound, Workload], str]


def refusals(adapter: Adapter, server: Server, workloads: Sequence[Workload]) -> Iterator[Refusal]:
    """At most one a limit: that of the load which needs most."""
    bounds, heaviest = adapter.bounds(server), sorted(workloads, key=_whole, reverse=True)
    for rule in RULES:
        if (bound := bounds.get(rule.limits)) is None:
            continue
        message = next((message for one in heaviest if (message := rule.broken(bound, one))), "")
        if message:
            yield Refusal(rule=rule.id, path=bound.path, message=message)


def _requests(bound: Bound, load: Workload) -> str:
    if bound.most < 1:
        return f"{bound.flag} lets no request in; write at least {load.concurrency}, or leave it out"
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
    if bound.most > 0 and (load.rate is not None or _whole(load) <= bound.most):
        return ""
    if load.rate is not None:
        return (
            f"{bound.flag} lets nothing through; write at least {_tokens(load.dataset, FEWEST_CHARACTERS)}"
            f"{_and_prompts(load.dataset)} for each request that may be under way, or leave it out"
        )
    return (
        f"{bound.flag} is too few for {load.name}: {load.concurrency} requests at a time, {_of(load.dataset)}; write "
        f"at least {load.concurrency * _tokens(load.dataset, FEWEST_CHARACTERS)}{_and_prompts(load.dataset)}, lower "
        "maxTokens or the concurrency, or leave it out"
    )


RULES = (
    Rule(
        id="requests-fit",
        limits="requests",
        broken=_requests,
        reason="the rest wait inside the server, and the point has another name than load",
        source="SGLang 0.5.23 managers/scheduler.py:1241, vLLM 0.33.0 v1/core/sched/scheduler.py:1072",
    ),
    Rule(
        id="context-fits",
        limits="context",
        broken=_context,
        reason="a request that may come to more tokens is answered with 400",
        source="SGLang 0.5.23 managers/tokenizer_manager.py:1373, vLLM 0.33.0 renderers/base.py:522",
    ),
    Rule(
        id="tokens-fit",
        limits="tokens",
        broken=_all,
        reason="fewer run at a time than are asked for, or some lose their place, and a round with retractions is no "
        "evidence",
        source="SGLang 0.5.23 managers/scheduler.py:1212",
    ),
)


def _whole(load: Workload) -> int:
    """Tokens that are certain to be asked for at one time; at a rate, how many requests that are is not known."""
    return (load.concurrency if load.rate is None else 1) * _tokens(load.dataset, MOST_CHARACTERS)


def _tokens(dataset: Dataset, characters: int) -> int:
    """Of the longest request with its answer, at so many characters a token. Of a user's file only that a prompt has
    one is known; what a chat template adds is left out."""
    return dataset.max_tokens + max(1, math.ceil(_longest(dataset) / characters))


def _longest(dataset: Dataset) -> int:
    """Characters of the longest prompt; 0 of a user's own."""
    return LONGEST.get(dataset.source.removeprefix(BUILTIN), 0)


def _of(dataset: Dataset) -> str:
    if not (longest := _longest(dataset)):
        return f"answers of up to {dataset.max_tokens} tokens, and their prompts"
    prompt = math.ceil(longest / MOST_CHARACTERS)
    return f"answers of up to {dataset.max_tokens} tokens, to prompts of up to {longest} characters ({prompt} or more)"


def _and_prompts(dataset: Dataset) -> str:
    return "" if _longest(dataset) else " and the longest prompt"
