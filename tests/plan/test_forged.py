"""BenchmarkRounds that are brought along may hold anything that the API server takes: what does not judge is refused,
and no pass ends in an error."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import admitted, signing
from tests.support.imported import ALLOWED, file

from paceline import api
from paceline.api.round import Round
from paceline.core.record import from_status
from paceline.measure import record
from paceline.plan import run
from paceline.plan.step import Adopt, Plan
from paceline.render import Settings

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


def forged(spec: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """The round with one of its values replaced, or taken away, as an API server would take it."""
    while admitted.refusals("BenchmarkRound", other := changed(spec, dice)):
        pass
    return other


def changed(spec: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    raw = deepcopy(spec)
    *above, last = dice.choice(list(paths(raw)))
    holder = raw
    for key in above:
        holder = holder[key]
    if dice.random() < 0.15:
        del holder[last]
    else:
        holder[last] = deepcopy(dice.choice(ODD))
    return raw


def planned(document: dict[str, Any], rounds: list[dict[str, Any]], settings: Settings = ALLOWED) -> Plan:
    metadata = {**document["metadata"], "uid": "u", "generation": 1, "creationTimestamp": "2026-11-22T11:00:00Z"}
    snapshot = run.Snapshot(
        manifest={**document, "metadata": metadata},
        spec=api.run(document),
        invalid="",
        jobs=(),
        objects=tuple(rounds),
        namespaces=("models",),
        suspended=False,
        settings=settings,
    )
    return run.plan(snapshot, NOW)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_forged_is_judged_or_refused(seed: int) -> None:
    dice, (document, *rounds) = random.Random(seed), list(record.as_documents(file()))
    reasons = set()
    for _ in range(100):
        chosen = dice.randrange(len(rounds))
        found = [{**one, "spec": forged(one["spec"], dice)} if n == chosen else one for n, one in enumerate(rounds)]
        plan = planned(document, found)
        assert all(isinstance(action, Adopt) for action in plan.actions)
        assert plan.status is not None
        admitted.check("BenchmarkRun", json.loads(json.dumps(plan.status)))
        reasons |= {one["reason"] for one in plan.status["conditions"]}
    assert reasons <= {"ImportRefused", "Promote", "Inconclusive", "Reject"}
    assert {"ImportRefused", "Promote"} <= reasons


def test_what_is_forged_is_refused_where_signers_are_listed() -> None:
    """Except a value that is read as the one that it replaces."""
    key = signing.key()
    listing = replace(ALLOWED, signers={"desk": signing.pem(key)})
    dice, (document, *rounds) = random.Random(7), list(record.as_documents(signing.signed_file(key)))
    reasons = set()
    for number in range(100):
        chosen = number % len(rounds)
        other = forged(rounds[chosen]["spec"], dice)
        found = [{**one, "spec": other} if n == chosen else one for n, one in enumerate(rounds)]
        plan = planned(document, found, listing)
        assert plan.status is not None
        (reason,) = {one["reason"] for one in plan.status["conditions"]}
        alike = from_status(Round, other) == from_status(Round, rounds[chosen]["spec"])
        assert reason == ("Promote" if alike else "ImportRefused")
        reasons.add(reason)
    assert len(reasons) == 2
