"""Rounds that are brought along may hold anything: whatever does not judge is refused, and no pass ends in an error."""

import base64
import json
import random
import zlib
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import admitted
from tests.support.imported import ALLOWED, file, with_rounds

from paceline import api
from paceline.evidence.message import PREFIX
from paceline.plan import run
from paceline.plan.step import Plan

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 1e308, 10**30, float("nan"), float("inf")),
    *("x", "1" * 5000, [], {}, [[]], {"a": 1}),
)
Path = tuple[Any, ...]


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*here, key)
        yield from paths(item, (*here, key))


def forged(message: str, dice: random.Random) -> str:
    """The message with one of its values replaced, or taken away."""
    raw = opened(message)
    *above, last = dice.choice(list(paths(raw)))
    holder = raw
    for key in above:
        holder = holder[key]
    if dice.random() < 0.15:
        del holder[last]
    else:
        holder[last] = deepcopy(dice.choice(ODD))
    return closed(raw)


def opened(message: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b85decode(message.removeprefix(PREFIX))))
    return found


def closed(raw: dict[str, Any]) -> str:
    return PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()


def planned(honest: dict[str, Any], messages: list[str]) -> Plan:
    brought = with_rounds(honest, messages)
    brought["metadata"] |= {"uid": "u", "generation": 1}
    snapshot = run.Snapshot(
        manifest=brought,
        spec=api.run(brought),
        invalid="",
        rounds=(),
        namespaces=("models",),
        suspended=False,
        settings=ALLOWED,
    )
    return run.plan(snapshot, NOW)


def test_what_can_be_read_and_not_judged_is_refused() -> None:
    """A server's last words are a number."""
    honest = file()["spec"]
    first, *others = honest["measured"]["rounds"]
    raw = opened(first)
    raw["arms"][3], raw["failures"] = [5, 5], [None, None]
    status = planned(honest, [closed(raw), *others]).status
    assert status is not None
    assert "spec.measured.rounds: they cannot be judged (TypeError)" in status["conditions"][0]["message"]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_forged_is_judged_or_refused(seed: int) -> None:
    dice, honest = random.Random(seed), file()["spec"]
    for _ in range(25):
        messages = list(honest["measured"]["rounds"])
        chosen = dice.randrange(len(messages))
        messages[chosen] = forged(messages[chosen], dice)
        plan = planned(honest, messages)
        assert plan.actions == ()
        assert plan.status is not None
        admitted.check("BenchmarkRun", json.loads(json.dumps(plan.status)))
        assert [one["reason"] for one in plan.status["conditions"]] in (["ImportRefused"], ["Promote"])
