"""How a round reads sglang-jax: resolved arguments from its server info, speculation and retractions from its log.

No path has an acceptance length, not even `/metrics`, but with `--decode-log-interval 1` every decode step has a line
(managers/scheduler_metrics_mixin.py:125):

    Decode batch. #running-req: 4, #token: 913, token usage: 0.01, accept-len 2.25, accept-ratio 0.56, …

`accept-len` is the mean over the verified requests, and counts the bonus token, as ours does. The overlap scheduler
launches a step before it knows the previous result, so the step still holds the requests that ended there, and
`#running-req` counts them (scheduler_output_processor_mixin.py:380-395 leaves them out of the rest). The next line no
longer has them. No line has acceptance by position.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paceline.engines.probe import Probe, Scrape, Speculation, json_object, positive

_INFO = "/get_server_info"
BATCH = re.compile(r"(?P<kind>Prefill|Decode) batch\. #(?:new-seq|running-req): (?P<requests>\d+), (?P<rest>.*)")
"""The line of a step. `Prefill batch. #bid: …` reports a compiled program, not a step."""
_LENGTH = re.compile(r"\baccept-len (?P<length>\d+(?:\.\d+)?), ")
_RETRACTED = re.compile(r"Retract requests\. #retracted_reqs: (?P<requests>\d+)")


def probe(_: str) -> Probe:
    """The same probe for every version."""
    return Probe(
        pages=(_INFO,),
        resolved=resolved,
        kv_tokens=kv_tokens,
        speculation=speculation,
        flush_path="/flush_cache",
        whole={"separate_reasoning": False},
        own_temperature=0.7,  # entrypoints/openai/protocol.py:402: the model's values are not read
        reads_log=True,
        unseen=("accepted_at",),
    )


def resolved(scrape: Scrape) -> Mapping[str, Any]:
    return json_object(scrape.pages[_INFO])


def kv_tokens(scrape: Scrape) -> int | None:
    return positive(json_object(scrape.pages[_INFO]).get("max_total_num_tokens"))


def speculation(before: Scrape, after: Scrape) -> Speculation:
    """Speculation from the log lines in between; empty without decode steps (a log level that hides them)."""
    log = after.log[len(before.log) :]
    steps = tuple(_steps(log))
    if not steps:
        return Speculation()
    verified = [(step.length, requests) for step, requests in _verified(steps, _overlaps(after)) if step.length]
    verify_calls = sum(requests for _, requests in verified)
    # Lines round to hundredths, so rounding recovers a step's whole number of tokens up to a batch of 99.
    tokens = sum(round(length * requests) for length, requests in verified)
    return Speculation(
        accept_length=tokens / verify_calls if verify_calls else None,
        verify_calls=verify_calls or None,
        retractions=sum(int(line["requests"]) for line in _RETRACTED.finditer(log)),
    )


class DecodeStep(NamedTuple):
    """A decode step from its log line. `after_prefill`: a prefill was launched since the line before, and runs next."""

    requests: int
    length: float | None
    after_prefill: bool


def _steps(log: str) -> Iterator[DecodeStep]:
    prefill = False
    for line in BATCH.finditer(log):
        if line["kind"] == "Decode":
            length = _LENGTH.search(line["rest"])
            yield DecodeStep(int(line["requests"]), float(length["length"]) if length else None, prefill)
        prefill = line["kind"] == "Prefill"


def _verified(steps: tuple[DecodeStep, ...], overlaps: bool) -> Iterator[tuple[DecodeStep, int]]:
    """Each step with the number of requests that were verified in it.

    Requests missing from the next line had ended before this step. If a prefill runs in between, or new requests take
    their first step alone, the next line may show only the new requests, or more of them: then the line's own number is
    used, which is too high by one for each ended request.
    """
    for step, following, after in zip(steps, (*steps[1:], None), (*steps[2:], None, None), strict=False):
        # Requests arrive only by prefill: a batch that grows without one had a separate first part.
        part = following and after and after.requests > following.requests and not after.after_prefill
        comparable = overlaps and following and not step.after_prefill and not part
        yield step, min(step.requests, following.requests) if comparable and following else step.requests


def _overlaps(scrape: Scrape) -> bool:
    """Only a flag decides on sglang-jax (managers/scheduler.py:326)."""
    return resolved(scrape).get("disable_overlap_schedule") is not True
