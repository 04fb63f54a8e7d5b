"""The built-in prompts are many, different from each other and short enough to be sent."""

import hashlib
import json
import re
from itertools import combinations

import pytest

from paceline.pods import datasets

PROMPTS = 512
WORDS = {"code": (20, 150), "chat": (20, 150), "swe": (40, 250), "terminal": (40, 250)}

# 700 tokens even for text as dense as 3 bytes a token; tokenizers of the served models take 3.2 to 4.5 on such text.
MOST_BYTES = 2100


FIRST = {
    "code": "c2f6ea1c0eec0379",
    "swe": "cccd869fa2307fb6",
    "terminal": "80a38b32d5f80ca0",
    "chat": "3a82def1acab25b3",
}


def five_grams(prompt: str) -> set[tuple[str, ...]]:
    words = prompt.lower().split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@pytest.mark.parametrize("name", datasets.NAMES)
def test_a_set_has_its_prompts_with_ids_in_order(name: str) -> None:
    records = datasets.records(name)
    assert len(records) == PROMPTS
    assert [record.id for record in records] == [f"{name}-{i:03d}" for i in range(1, len(records) + 1)]


@pytest.mark.parametrize(("name", "sha256"), FIRST.items())
def test_the_first_hundred_are_what_they_were(name: str, sha256: str) -> None:
    """Files are append-only: evidence says "the first 64 of code"."""
    first = json.dumps(datasets.load_dataset(name)[:100])
    assert hashlib.sha256(first.encode()).hexdigest()[:16] == sha256


@pytest.mark.parametrize("name", datasets.NAMES)
def test_prompts_have_the_length_of_real_requests(name: str) -> None:
    least, most = WORDS[name]
    odd = [
        record.id
        for record in datasets.records(name)
        if not least <= len(record.prompt.split()) <= most or len(record.prompt.encode()) > MOST_BYTES
    ]
    assert odd == []


@pytest.mark.parametrize("name", datasets.NAMES)
def test_no_two_prompts_of_a_set_share_more_than_30_percent_of_their_five_grams(name: str) -> None:
    """Shared 5-grams over those of the smaller prompt: near-copies would be answered from the prefix cache."""
    grams = [(record.id, five_grams(record.prompt)) for record in datasets.records(name)]
    alike = [(a, b) for (a, x), (b, y) in combinations(grams, 2) if len(x & y) > 0.3 * min(len(x), len(y))]
    assert alike == []


def test_no_prompt_is_in_two_sets() -> None:
    prompts = [prompt for name in datasets.NAMES for prompt in datasets.load_dataset(name)]
    assert len(set(prompts)) == len(prompts)


def test_hosts_are_examples() -> None:
    """Nothing that a model might be asked to fetch leads to anybody's machine."""
    host = re.compile(r"://([^/\s\"'`>]+)")
    ours = re.compile(r"(\w+\.)*example\.(com|org)|localhost|127\.\d+\.\d+\.\d+|10\.\d+\.\d+\.\d+|[${].*")
    prompts = [(record.id, record.prompt) for name in datasets.NAMES for record in datasets.records(name)]
    found = [(i, match.rsplit(":", 1)[0]) for i, prompt in prompts for match in host.findall(prompt)]
    assert len(found) > 5
    assert [(i, match) for i, match in found if not ours.fullmatch(match)] == []


def test_an_unknown_set_is_named_together_with_the_known_ones() -> None:
    with pytest.raises(KeyError) as error:
        datasets.load_dataset("humaneval")
    assert all(name in str(error.value) for name in ("'humaneval'", "code", "swe", "terminal", "chat"))
