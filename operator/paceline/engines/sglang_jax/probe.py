"""sglang-jax as a round sees it: resolved arguments in its server info, speculation and retractions in its log.

No page tells an acceptance length and `/metrics` has nothing of it, but with `--decode-log-interval 1` every decode
step has a line (managers/scheduler_metrics_mixin.py:125):

    Decode batch. #running-req: 4, #token: 913, token usage: 0.01, accept-len 2.25, accept-ratio 0.56, …

In a step each running request is verified once, so `#running-req` is the line's weight and its sum the verify calls.
`accept-len` counts the token that is always right, as ours does. Of positions no line says anything.
"""

import re
from collections.abc import Mapping
from typing import Any

from paceline.engines.probe import Look, Probe, Speculation, json_object, positive

INFO = "/get_server_info"
DECODE = "Decode batch. "
STEP = re.compile(r"Decode batch\. #running-req: (?P<requests>\d+), .*\baccept-len (?P<length>\d+(?:\.\d+)?), ")
RETRACTED = re.compile(r"Retract requests\. #retracted_reqs: (?P<requests>\d+)")


def probe(_: str) -> Probe:
    """The same for every version."""
    return Probe(
        pages=(INFO,),
        resolved=resolved,
        kv_tokens=kv_tokens,
        speculation=speculation,
        flush_path="/flush_cache",
        backend="sglang-oai-chat",
        whole={"separate_reasoning": False},
        reads_log=True,
        unseen=("accepted_at",),
    )


def resolved(look: Look) -> Mapping[str, Any]:
    return json_object(look.pages[INFO])


def kv_tokens(look: Look) -> int | None:
    return positive(json_object(look.pages[INFO]).get("max_total_num_tokens"))


def speculation(before: Look, after: Look) -> Speculation:
    """Of what was logged in between; nothing where no decode step was (a log level that hides them)."""
    log = after.log[len(before.log) :]
    if DECODE not in log:
        return Speculation()
    steps = [(int(step["requests"]), float(step["length"])) for step in STEP.finditer(log)]
    verify_calls = sum(requests for requests, _ in steps)
    # A line rounds to hundredths, so the tokens of a step are a whole number again up to a batch of 99.
    tokens = sum(round(requests * length) for requests, length in steps)
    return Speculation(
        accept_length=tokens / verify_calls if verify_calls else None,
        verify_calls=verify_calls or None,
        retractions=sum(int(found["requests"]) for found in RETRACTED.finditer(log)),
    )
