"""The prompts that a workload is sent: where they come from, and how."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from paceline import core
from paceline.api.model import Finding, Model, Rule
from paceline.api.pace import LASTS, MOST_REQUESTS
from paceline.api.words import Amount, DatasetName, DatasetSource, Revision, Temperature

ONE_FILE = "source hf://datasets/OWNER/NAME/PATH must name one .json or .jsonl file of single-turn prompts"
TABLES = (".parquet", ".csv", ".arrow")
FEWEST_TOKENS = 3
"""Of an answer. The benchmark client refuses an expectation below 4 (sharegpt.py:68 of 0.5.23, and compiled), and is
told of one more than an answer may have (`load.UNCOUNTED`)."""


def _no_file_of_prompts(prompts: "PromptsSpec") -> Iterator[Finding]:
    source = prompts.source
    file = source.removeprefix(core.HUB).split("/", 2)[2:]
    if not source.startswith(core.HUB) or (file and file[0].endswith((".json", ".jsonl"))):
        return
    if not file:
        why = "name a file of this repository"
    elif file[0].endswith(TABLES):
        why = "write the rows out as messages, with to_json of the library `datasets` for instance, and name that file"
    elif file[0].endswith((".gz", ".zip", ".zst", ".bz2", ".xz")):
        why = "name one that is not packed"
    else:
        why = "what is in it must be told by its name"
    yield ".source", f"{ONE_FILE}: {why}; got {source}"


class PromptsSpec(Model):
    """A prompt set and how many of its prompts are sent."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!self.source.startsWith('{core.HUB}') || self.source.matches('^{core.HUB}[^/]+/[^/]+/.+[.]jsonl?$')",
            message=ONE_FILE,
            field=".source",
            broken=_no_file_of_prompts,
        ),
        LASTS,
    )

    name: DatasetName
    """Name in results."""
    source: DatasetSource
    """Source of the prompts: builtin://code, builtin://swe, builtin://terminal, builtin://chat, or a file of
    single-turn OpenAI messages or ShareGPT conversations: configMap://NAME/KEY, pvc://CLAIM/PATH or, on the hub,
    hf://datasets/OWNER/NAME/PATH."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """Requests to send; 64 if absent. A closed loop sends at least five times its concurrency. With requestRate: at
    least as many as arrive in 20 seconds; if absent, as many as arrive in 60."""
    max_tokens: Annotated[int, Field(ge=FEWEST_TOKENS, le=131072)] | None = None
    """Maximum tokens per answer; 512 if absent. The benchmark client accepts 3 or more."""
    request_rate: Amount | None = None
    """Mean arrivals per second, at random times, independent of the requests under way; replaces the closed loop. The
    gate then compares the speed of a request, not throughput."""
    temperature: Temperature | None = None
    """Sampling temperature of every request; "0" (greedy) if absent. model: requests name no temperature and the server
    uses its own default, on most engines that of the model's generation_config.json. All other sampling parameters are
    the server's defaults."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Weight in the mean over workloads."""


def of_the_hub_alone(field: str) -> Rule:
    """A field of prompts that says something of hf://datasets/ and of no other source."""

    def broken(prompts: Any) -> Iterator[Finding]:
        if getattr(prompts, field) is not None and not prompts.source.startswith(core.HUB):
            yield f".{field}", message

    message = f"{field} must be left out where source is not of {core.HUB}: nothing else has one"
    return Rule(
        cel=f"!has(self.{field}) || self.source.startsWith('{core.HUB}')",
        message=message,
        field=f".{field}",
        broken=broken,
    )


class DatasetSpec(PromptsSpec):
    """A prompt set and how many of its prompts are sent."""

    rules = (*PromptsSpec.rules, of_the_hub_alone("revision"))

    revision: Revision | None = None
    """Branch, tag or commit of a dataset on the hub, main if absent; resolved to a commit once, then pinned in
    status."""
