"""The built-in prompts: four sets of single-turn requests, written for this project (README.md beside the data)."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypedDict

NAMES = ("code", "swe", "terminal", "chat")

PLACEHOLDER = (
    "This answer stands in for a real one. Benchmark clients read it only to guess how long an answer may become when "
    "they are given no length of their own; the served model never sees it, and nothing is compared with it."
)


class UnknownDatasetError(KeyError):
    """Raised for a set that does not exist; names the existing ones."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no built-in dataset {name!r}; there are {', '.join(NAMES)}")

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0])


class Record(NamedTuple):
    id: str
    prompt: str


StoredMessage = TypedDict("StoredMessage", {"from": str, "value": str})


class StoredConversation(TypedDict):
    id: str
    conversations: list[StoredMessage]


@cache
def records(name: str) -> tuple[Record, ...]:
    """The prompts of a set with their ids, in the order of the file."""
    if name not in NAMES:
        raise UnknownDatasetError(name)
    with files(__name__).joinpath(f"{name}.jsonl").open(encoding="utf-8") as lines:
        return tuple(Record(**json.loads(line)) for line in lines)


def load_dataset(name: str) -> tuple[str, ...]:
    """The prompts of a set. The order is part of the contract: all arms get the same prompts in the same order."""
    return tuple(record.prompt for record in records(name))


def sharegpt(name: str) -> list[StoredConversation]:
    """A set as ShareGPT conversations of one question and one placeholder answer, as SGLang's clients read them."""
    return [
        {
            "id": record.id,
            "conversations": [
                {"from": "human", "value": record.prompt},
                {"from": "gpt", "value": PLACEHOLDER},
            ],
        }
        for record in records(name)
    ]
