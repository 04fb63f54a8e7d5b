"""Limits of the user's own that a load does not fit under: one row a rule and an engine, with the way out."""

from dataclasses import replace

import pytest
from tests.support import jax_servers, vllm_server
from tests.support.messages import Says
from tests.unit.engines.sglang import servers

from paceline.core import Dataset, Server, Workload
from paceline.engines import ENGINES, load_rules
from paceline.engines.bounds import parse_number
from paceline.pods import datasets

MINE = "configMap://prompts/mine.jsonl"
LONGEST = load_rules.LONGEST_PROMPTS["swe"]
LEAST, ENOUGH = -(-LONGEST // load_rules.MOST_CHARACTERS), -(-LONGEST // load_rules.FEWEST_CHARACTERS)
"""Tokens that the longest prompt of swe has at least, and at most."""


def load(concurrency: int, source: str = "builtin://swe", tokens: int = 512, rate: float | None = None) -> Workload:
    dataset = Dataset(name="swe", source=source, requests=64, max_tokens=tokens, rate=rate)
    return Workload(dataset=dataset, concurrency=concurrency)


def refused(server: Server, *loads: Workload) -> list[tuple[str, str, str]]:
    adapter = ENGINES[server.engine.type]
    return [(refusal.rule, refusal.path, refusal.message) for refusal in load_rules.refusals(adapter, server, loads)]


sglang, jax, vllm = servers.server, jax_servers.server, vllm_server.server

ROWS: list[tuple[str, Server, Workload]] = [
    ("requests-fit", sglang("--max-running-requests=4"), load(16)),
    ("requests-fit", jax("--max-running-requests", "4"), load(16)),
    ("requests-fit", jax("--max-running-requests=0"), load(1)),
    ("requests-fit", sglang("--max-running-requests=-1"), load(16)),
    ("requests-fit", sglang("--max-running-requests", "-1"), load(16, rate=8)),
    ("requests-fit", vllm("--max-num-seqs=-1"), load(16)),
    ("requests-fit", vllm("--max_num_seqs", "0"), load(16, rate=8)),
    ("context-fits", sglang("--context-length=-1"), load(1)),
    ("context-fits", vllm("--max-model-len=0"), load(1)),
    ("tokens-fit", sglang("--max-total-tokens=0"), load(16)),
    ("tokens-fit", jax("--max-total-tokens=-8k"), load(16, MINE, rate=8)),
    ("requests-fit", vllm("--max_num_seqs=4"), load(16)),
    ("requests-fit", sglang("--max-running-requests=4", "--dp-size=2"), load(16)),
    ("context-fits", sglang("--context-length=512"), load(1)),
    ("context-fits", sglang("--context-length", f"{511 + LEAST}"), load(1)),
    ("context-fits", sglang("--context-length=2k"), load(1, MINE, tokens=2000)),
    ("context-fits", jax("--context-length=512"), load(1)),
    ("context-fits", vllm("--max-model-len=1k"), load(1, tokens=1024)),
    ("context-fits", sglang("--context-length=512"), load(1, rate=2)),
    ("tokens-fit", sglang("--max-total-tokens=2048"), load(16)),
    ("tokens-fit", jax("--max-total-tokens=2048"), load(16, MINE)),
]  # fmt: skip


def test_the_longest_prompts_are_those_of_the_built_in_sets() -> None:
    assert {name: max(map(len, datasets.load_dataset(name))) for name in datasets.NAMES} == load_rules.LONGEST_PROMPTS


@pytest.mark.parametrize(("rule", "server", "asked"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule(rule: str, server: Server, asked: Workload, says: Says) -> None:
    ((found, path, text),) = refused(server, asked)
    assert (found, path) == (rule, "engine.args[0]")
    says(text)


def test_every_rule_has_a_row_and_says_why() -> None:
    assert {rule.id for rule in load_rules.RULES} == {row[0] for row in ROWS}
    assert all(rule.reason and rule.source for rule in load_rules.RULES)


def test_the_load_that_needs_most_is_told_of_and_no_other() -> None:
    ((_, _, message),) = refused(sglang("--max-running-requests=4"), load(8), load(32), load(16))
    assert "swe@32" in message


@pytest.mark.parametrize(
    ("flag", "asked", "enough"),
    [("--context-length", load(1), 512 + ENOUGH), ("--max-total-tokens", load(16), 16 * (512 + ENOUGH))],
)
def test_what_is_asked_for_is_enough(flag: str, asked: Workload, enough: int) -> None:
    ((_, _, message),) = refused(sglang(f"{flag}=512"), asked)
    assert f" {enough}," in message
    assert refused(sglang(f"{flag}={enough}"), asked) == []


@pytest.mark.parametrize(
    ("server", "asked"),
    [
        (sglang("--max-running-requests=16"), load(16)),
        (sglang("--max-running-requests=2"), load(16, rate=8)),  # what is under way at a rate is not known
        (sglang("--context-length", f"{512 + LEAST}"), load(1)),  # it may fit: not certain
        (sglang("--max-total-tokens=16k"), load(16)),
        (vllm("--max-model-len=auto"), load(1)),
        (vllm("--max-model-len=-1"), load(1)),  # as auto
        (vllm("--max-num-seqs=8", "--data-parallel-size=2"), load(16)),
        (sglang(), replace(load(4096), dataset=load(1, tokens=131072).dataset)),
    ],
)
def test_what_may_fit_is_let_pass(server: Server, asked: Workload) -> None:
    assert refused(server, asked) == []


@pytest.mark.parametrize(
    ("text", "is_"),
    [("8k", 8000), ("8Ki", 8192), ("1.5k", 1500), ("32K", 32768), ("auto", None), ("-1", -1), ("", None)],
)
def test_numbers_as_engines_read_them(text: str, is_: int | None) -> None:
    assert parse_number(text) == is_
