"""The prompts of a workload: their source, and how they are sent."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from paceline import core
from paceline.api.load import MOST_REQUESTS
from paceline.api.model import SchemaModel
from paceline.api.rules import DeskRule, Rule, Violation
from paceline.core import response_format
from paceline.core.types import AdapterName, DatasetName, DatasetSource, Revision, Temperature

MOST_TURNS = 64
ONE_FILE = "source hf://datasets/OWNER/NAME/PATH must name one .json, .jsonl, .parquet or .csv file of prompts"
READ, PACKED = "jsonl?|parquet|csv", "gz|zip|zst|bz2|xz"
NOT_A_FILE_OF_PROMPTS = {
    f"!self.source.matches('^{core.HUB}[^/]+/[^/]+$')": "name a file of this repository",
    f"!self.source.matches('^{core.HUB}.*[.]arrow$')": "write the rows out with to_parquet of the library `datasets`,"
    " and name that file",
    f"!self.source.matches('^{core.HUB}.*[.]({PACKED})$')": "name a file that is not packed",
    f"!self.source.matches('^{core.HUB}[^/]+/[^/]+/') || self.source.matches('[.]({READ}|arrow|{PACKED})$')":
    "name a file with such an ending",
}  # fmt: skip
"""CEL that must hold for a prompt file's source → the way out."""


def _no_format(prompts: "PromptsSpec") -> Iterator[Violation]:
    if wrong := response_format.problem_of_text(prompts.response_format) if prompts.response_format else "":
        yield ".responseFormat", wrong


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    core.Slo: (Rule(cel="has(self.ttft) || has(self.itl)", message="ttft, itl or both must be set"),),
}


class PromptsSpec(SchemaModel):
    """A prompt set and how many of its prompts are sent."""

    rules: ClassVar[tuple[Rule | DeskRule, ...]] = (
        *(
            Rule(cel=rule, message=f"{ONE_FILE}: {way_out}; got {{self.source}}", field=".source")
            for rule, way_out in NOT_A_FILE_OF_PROMPTS.items()
        ),
        Rule(
            cel="!has(self.turns) || !self.source.startsWith('builtin://')",
            message="turns must be left out for a built-in set: its conversations have one question",
            field=".turns",
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
    hf://datasets/OWNER/NAME/PATH. The last answer of each is generated; all before it is history."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """Requests to send; 64 if absent. A closed loop sends at least five times its concurrency, a ramp five times its
    top. At a rate: at least as many as arrive in 20 seconds; if absent, as many as arrive in 60, and at
    least 64."""
    max_tokens: Annotated[int, Field(ge=1, le=131072)] | None = None
    """Maximum tokens per answer; 512 if absent."""
    temperature: Temperature | None = None
    """Sampling temperature of every request; "0" (greedy) if absent. model: requests name no temperature, and the
    server's default applies: on most engines the model's generation_config.json. All other sampling parameters have the
    server's defaults."""
    turns: Annotated[int, Field(ge=2, le=MOST_TURNS)] | None = None
    """Most answers of a conversation that are generated one after another, with what came before them in the server's
    cache; only the last one if absent. A longer conversation is sent in parts of as many."""
    adapter: AdapterName | None = None
    """LoRA adapter that requests name, as `engine.args` loads it: --lora-paths NAME=PATH on SGLang, --enable-lora and
    --lora-modules NAME=PATH on vLLM; the model itself if absent."""
    response_format: Annotated[str, Field(max_length=16384)] | None = None
    """The response_format of every request, as JSON text: {"type": "json_schema", "json_schema": {"name": …, "schema":
    …}}, or json_object. Entries may have their own. A point is invalid if more than 5 % of its answers do not fit."""
    slo: core.Slo | None = None
    """Latencies that a request must meet to count for goodput. If absent, goodput is not counted."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Weight in the mean over workloads; 1 if absent."""


def only_of_the_hub(field: str) -> Rule:
    """A field of prompts for sources hf://datasets/ only."""
    return Rule(
        cel=f"!has(self.{field}) || self.source.startsWith('{core.HUB}')",
        message=f"{field} must be left out unless source begins with {core.HUB}: other sources do not have it",
        field=f".{field}",
    )


class DatasetSpec(PromptsSpec):
    """A prompt set and how many of its prompts are sent."""

    rules = (*PromptsSpec.rules, only_of_the_hub("revision"))

    revision: Revision | None = None
    """Branch, tag or commit of a dataset on the hub, main if absent; resolved to a commit once, then pinned in
    status."""
