"""What a pass finds out once: the prefetch's message is decoded once, and each pool's choice is made once."""

import sys
from collections import Counter
from datetime import datetime
from types import FrameType
from typing import Any

import pytest
from tests.support.stories import promoted
from tests.support.world import World, example

from paceline.plan import deployment

COUNTED = ("from_message", "choose")


def test_the_prefetchs_message_is_decoded_once_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = count(monkeypatch)
    world = World()
    world.apply(example())
    world.prefetch_ends()
    decodes = [calls["from_message"] for calls in passes]
    assert max(decodes) == 1, "one Job has ended, and its pod is there"


def test_each_pool_chooses_once_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second choice of a pass is the one that a new hold causes; here nothing is held."""
    world = World()
    promoted(world, "latency", "throughput")
    passes = count(monkeypatch)
    world.edit("suspended", lambda spec: spec.update(suspend=True))
    world.edit("resumed", lambda spec: spec.pop("suspend"))
    assert passes
    assert {calls["choose"] for calls in passes} == {len(example()["spec"]["pools"])}


def count(monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """Calls of each counted function, by pass of the deployment's planner from now on."""
    passes: list[Counter[str]] = []
    plan = deployment.plan

    def counted(snapshot: deployment.Snapshot, now: datetime) -> Any:
        calls: Counter[str] = Counter()

        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_name in COUNTED:
                calls[frame.f_code.co_name] += 1

        sys.setprofile(profile)
        try:
            return plan(snapshot, now)
        finally:
            sys.setprofile(None)
            passes.append(calls)

    monkeypatch.setattr(deployment, "plan", counted)
    return passes
