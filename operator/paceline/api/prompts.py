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
    """Prompts and how many of them are sent."""

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
    """What it is called in results."""
    source: DatasetSource
    """Where the prompts come from: builtin://code, builtin://swe, builtin://terminal or builtin://chat, or a file of
    single-turn OpenAI messages or ShareGPT conversations: configMap://NAME/KEY, pvc://CLAIM/PATH or, on the hub,
    hf://datasets/OWNER/NAME/PATH."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """How many are sent, 64 if absent; in a closed loop never fewer than five times its concurrency. Where requestRate
    is set: at least as many as arrive in 20 seconds, and if absent as many as in 60."""
    max_tokens: Annotated[int, Field(ge=FEWEST_TOKENS, le=131072)] | None = None
    """Cap of an answer; 512 if absent. The benchmark client takes none below 3."""
    request_rate: Amount | None = None
    """Requests a second, arriving at random however many are under way, in place of always as many as the concurrency.
    The speed of a request is compared then, not throughput."""
    temperature: Temperature | None = None
    """Sampling temperature of every request, "0" if absent: greedy. model: requests name none, so they are sampled as
    the server does by itself, on most engines as the model's generation_config.json says. All else of sampling is the
    server's default either way."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Share in the weighted mean over workloads."""


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
    """Prompts and how many of them are sent."""

    rules = (*PromptsSpec.rules, of_the_hub_alone("revision"))

    revision: Revision | None = None
    """Branch, tag or commit of a dataset of the hub, main if absent; resolved to a commit once, then pinned in
    status."""
