"""The prompts that a workload is sent: where they come from, and how."""

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from paceline import core
from paceline.api.model import Model
from paceline.api.rules import DeskRule, Rule, Violation
from paceline.api.slo import SloSpec
from paceline.api.types import AMOUNT, AdapterName, DatasetName, DatasetSource, Matches, Revision, Temperature
from paceline.core import response_format

ONE_FILE = "source hf://datasets/OWNER/NAME/PATH must name one .json, .jsonl, .parquet or .csv file of prompts"
READ, PACKED = "jsonl?|parquet|csv", "gz|zip|zst|bz2|xz"
NOT_A_FILE_OF_PROMPTS = {
    f"!self.source.matches('^{core.HUB}[^/]+/[^/]+$')": "name a file of this repository",
    f"!self.source.matches('^{core.HUB}.*[.]arrow$')": "write the rows out with to_parquet of the library `datasets`,"
    " and name that file",
    f"!self.source.matches('^{core.HUB}.*[.]({PACKED})$')": "name one that is not packed",
    f"!self.source.matches('^{core.HUB}[^/]+/[^/]+/') || self.source.matches('[.]({READ}|arrow|{PACKED})$')":
    "name a file that ends so",
}  # fmt: skip
"""CEL of what must hold → the way out."""
FEWEST_TOKENS = 3
"""Of an answer. The benchmark client refuses an expectation below 4 (sharegpt.py:68 of 0.5.23, and compiled), and is
told of one more than an answer may have (`load.UNCOUNTED`)."""


Rate = Annotated[
    str,
    Field(max_length=12),
    Matches(
        AMOUNT,
        "be a decimal string from '0.001' to '999999.999', such as '8'; to replay the arrivals of a log write its mean"
        " rate, and arrivals: Replayed beside it",
    ),
]
MOST_REQUESTS = 100_000
LEAST_SECONDS, GOOD_SECONDS = 20, 60
"""For how long requests are to arrive: at least, and where nothing is said. In the first seconds, and once the last has
been sent, there are fewer under way than the rate makes: in a simulation of published speeds 64 requests at 8/s (8 s)
showed a ratio of 1.85 where 512 of them showed 2.00, and kept 63 % of the rate."""


def lasting(seconds: int, rate: float) -> int:
    """Requests that arrive for so long."""
    return math.ceil(seconds * rate - 1e-6)


REQUESTS = f"(has(self.requests) ? self.requests : {MOST_REQUESTS})"


def _arriving(seconds: int) -> str:
    """CEL: requests that arrive for so long, as `lasting` rounds them."""
    return f"int({seconds}.0 * double(self.requestRate) + 0.999999)"


LASTS = Rule(
    # The field itself refuses what is not a rate.
    cel=f"!has(self.requestRate) || !self.requestRate.matches(r'{AMOUNT}')"
    f" || double({REQUESTS}) >= {LEAST_SECONDS}.0 * double(self.requestRate) - 0.000001",
    message=f"requests must arrive for at least {LEAST_SECONDS} seconds at requestRate, or most of it is ramp and "
    f"drain; at {{self.requestRate}} a second {{{_arriving(LEAST_SECONDS)}}}, better {{{_arriving(GOOD_SECONDS)}}}; "
    f"got {{{REQUESTS}}}",
    field=".requests",
)


def _no_format(prompts: "PromptsSpec") -> Iterator[Violation]:
    if wrong := response_format.problem_of_text(prompts.response_format) if prompts.response_format else "":
        yield ".responseFormat", wrong


class PromptsSpec(Model):
    """A prompt set and how many of its prompts are sent."""

    rules: ClassVar[tuple[Rule | DeskRule, ...]] = (
        *(
            Rule(cel=rule, message=f"{ONE_FILE}: {way_out}; got {{self.source}}", field=".source")
            for rule, way_out in NOT_A_FILE_OF_PROMPTS.items()
        ),
        LASTS,
        Rule(
            cel="!has(self.rampFrom) || !has(self.requestRate)",
            message="requestRate must be left out where rampFrom is set: a ramp sends the next request when one is "
            "answered; write one of them, or a dataset for each",
            field=".requestRate",
        ),
        Rule(
            cel="!has(self.arrivals) || self.arrivals != 'Replayed' || has(self.requestRate)",
            message="requestRate must be set where arrivals is Replayed: the mean rate to which they are brought",
            field=".requestRate",
        ),
        Rule(
            cel="!has(self.arrivals) || self.arrivals != 'Replayed' || !self.source.startsWith('builtin://')",
            message="arrivals must be Random for a built-in set: its prompts have no timestamps",
            field=".arrivals",
        ),
        DeskRule(
            message="responseFormat must be the JSON of a request's response_format, with a valid JSON schema",
            field=".responseFormat",
            broken=_no_format,
        ),
    )

    name: DatasetName
    """Name in results."""
    source: DatasetSource
    """Source of the prompts: builtin://code, builtin://swe, builtin://terminal, builtin://chat, or a file of
    conversations (OpenAI messages with system prompts, several turns and tools, ShareGPT, bench_serving's custom and
    openai, SPEED-Bench) as JSON, JSON lines, parquet or csv: configMap://NAME/KEY, pvc://CLAIM/PATH or, on the hub,
    hf://datasets/OWNER/NAME/PATH. The last answer of each is generated, all before it is its history."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """Requests to send; 64 if absent. A closed loop sends at least five times its concurrency, a ramp
    five times its top. With requestRate: at
    least as many as arrive in 20 seconds; if absent, as many as arrive in 60."""
    max_tokens: Annotated[int, Field(ge=FEWEST_TOKENS, le=131072)] | None = None
    """Maximum tokens per answer; 512 if absent. The benchmark client accepts 3 or more."""
    request_rate: Rate | None = None
    """Mean arrivals per second, at random times, independent of the requests under way; replaces the closed loop. The
    gate then compares the speed of a request, not throughput."""
    ramp_from: Annotated[int, Field(ge=1, le=4095)] | None = None
    """A ramp: requests under way rise from this many to the largest concurrency of the pool, and fall back to it, by
    how many have been sent. Such a dataset is measured once a pool. The gate compares the speed of a request."""
    arrivals: core.Arrivals | None = None
    """Random (the default), or Replayed: with requestRate, in the pattern of the `timestamp` of the file's entries,
    spread or drawn together to that mean rate."""
    temperature: Temperature | None = None
    """Sampling temperature of every request; "0" (greedy) if absent. model: requests name no temperature and the server
    uses its own default, on most engines that of the model's generation_config.json. All other sampling parameters are
    the server's defaults."""
    adapter: AdapterName | None = None
    """LoRA adapter that requests name, as `engine.args` loads it: --lora-paths NAME=PATH on SGLang, --enable-lora and
    --lora-modules NAME=PATH on vLLM; the model itself if absent."""
    response_format: Annotated[str, Field(max_length=16384)] | None = None
    """The response_format of every request, as JSON text: {"type": "json_schema", "json_schema": {"name": …, "schema":
    …}}, or json_object. Of entries that have their own, theirs. A point of which more than 5 % of the answers do not
    fit is invalid."""
    slo: SloSpec | None = None
    """Latencies that a request must meet to count for goodput; in a pool that has an slo, this one replaces it. If
    absent, goodput is not counted."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Weight in the mean over workloads."""


def only_of_the_hub(field: str) -> Rule:
    """A field of prompts that only sources of hf://datasets/ have."""
    return Rule(
        cel=f"!has(self.{field}) || self.source.startsWith('{core.HUB}')",
        message=f"{field} must be left out unless source begins with {core.HUB}: other sources have none",
        field=f".{field}",
    )


class DatasetSpec(PromptsSpec):
    """A prompt set and how many of its prompts are sent."""

    rules = (*PromptsSpec.rules, only_of_the_hub("revision"))

    revision: Revision | None = None
    """Branch, tag or commit of a dataset on the hub, main if absent; resolved to a commit once, then pinned in
    status."""
