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
    raw = json.loads(zlib.decompress(base64.b85decode(message.removeprefix(PREFIX))))
    *above, last = dice.choice(list(paths(raw)))
    holder = raw
    for key in above:
        holder = holder[key]
    if dice.random() < 0.15:
        del holder[last]
    else:
        holder[last] = deepcopy(dice.choice(ODD))
    return PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_forged_is_judged_or_refused(seed: int) -> None:
    dice, honest = random.Random(seed), file()["spec"]
    for _ in range(25):
        messages = list(honest["measured"]["rounds"])
        chosen = dice.randrange(len(messages))
        messages[chosen] = forged(messages[chosen], dice)
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
        plan = run.plan(snapshot, NOW)
        assert plan.actions == ()
        assert plan.status is not None
        admitted.check("BenchmarkRun", json.loads(json.dumps(plan.status)))
        assert [one["reason"] for one in plan.status["conditions"]] in (["ImportRefused"], ["Promote"])
