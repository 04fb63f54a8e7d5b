"""Speculative configurations on either model runner: what the real 0.33.0 refuses before it starts, the desk refuses
(dev/vllm/try_speculation.py)."""

import json
from typing import Any

import pytest
from tests.contract.vllm_facts import CAPTURES
from tests.support.vllm_server import BASE, HEAD, server

from paceline.core import CUSTOM, Adaptive, Arm, Custom, Draft, Ngram, Tree
from paceline.engines import ENGINES
from paceline.engines.vllm.rules import METHODS
from paceline.engines.vllm.runner import RUNNER

ROWS = [json.loads(line) for line in (CAPTURES / "speculation.jsonl").read_text().splitlines()]
WORDS = {method: word for word, method in METHODS.items() if word != "NEXTN"}
FIELDS = ("method", "model", "num_speculative_tokens")
FLAG, ADAPTS = "--speculative-config", "enable_adaptive_verification"


def name(row: dict[str, Any]) -> str:
    return f"{row['runner']} {json.dumps(row['settings'])} {json.dumps(row['options'])}"


def arm(settings: dict[str, Any]) -> Arm:
    """As a resource says it: fields where it has some, keys for the rest."""
    if not settings:
        return BASE
    word, steps = WORDS.get(settings["method"]), settings.get("num_speculative_tokens", 0)
    keys = [key for key in settings if key not in (FIELDS if word else ("method",))]
    args = tuple(f"{FLAG}.{key}={_text(settings[key])}" for key in keys)
    if word is None:
        return Arm(name="arm", draft=Draft(algorithm=CUSTOM, name=settings["method"]), custom=Custom(args=args))
    if word == "NGRAM":
        return Arm(name="arm", draft=Draft(algorithm=word), ngram=Ngram(num_draft_tokens=steps + 1), args=args)
    if ADAPTS in settings:
        return Arm(name="arm", draft=Draft(algorithm=word, model=HEAD), adaptive=Adaptive(num_steps=steps))
    tree = Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1)
    return Arm(name="arm", draft=Draft(algorithm=word, model=HEAD), tree=tree, args=args)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def options(row: dict[str, Any]) -> tuple[str, ...]:
    flags = {f"--{key.replace('_', '-')}": value for key, value in row["options"].items()}
    return tuple(flag if value is True else f"{flag}={value}" for flag, value in flags.items())


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_desk_refuses_what_the_real_vllm_refuses(row: dict[str, Any]) -> None:
    on = server(*options(row) or ("--max-model-len=1024",), env=({"name": RUNNER, "value": row["runner"]},))
    assert bool(ENGINES["vLLM"].refusals(on, (BASE, arm(row["settings"])))) == bool(row["says"]), row["says"]
