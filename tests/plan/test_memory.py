"""What the operator remembers of a pool stands apart and is small; each pool has conditions of its own."""

import json
from dataclasses import fields
from typing import Any

from tests.support.world import World, example

from paceline.api.status import (
    MOST_TAKEN_DOWN,
    Degraded,
    ExpectedLoad,
    ExpectedTraffic,
    Handled,
    Hold,
    Loan,
    PoolProgress,
    PoolStatus,
    Retried,
    ServingEvidence,
    TakenDown,
    Target,
)
from paceline.core.record import slots, to_status

LARGEST = 8192
"""Bytes of a pool's memory, its holds' included."""
TIME = "2026-11-21T12:00:00Z"
REVISION, HASH, ARM = "5d41402abc", "0123456789", "a-name-of-twenty-letters"
RUN = f"a-deployment-of-40-characters-in-its-name-latency-{HASH}-12"
NODE = "ip-10-100-112-134.eu-central-1.compute.internal"
SENTENCE = "a sentence of a hundred characters: no server was ready within 30 min (promotion.progressDeadline): "


def largest() -> PoolStatus:
    """As much as a pool comes to that lends to its run on many nodes, has many workloads, and has had every request
    and more than one candidate taken down."""
    evidence = ServingEvidence(run=RUN, speedup=1.3642, caveats=("Emulated", "Imported"))
    down = TakenDown(
        revision=REVISION,
        arm=ARM,
        reason="Fallback",
        times=12,
        since=TIME,
        fell_back=TIME,
    )
    load = ExpectedLoad(
        workload="conversations@128", concurrency=127.253, accept_length=3.125, mean_ttft=0.123456, mean_tpot=0.0123456
    )
    return PoolStatus(
        name="latency",
        target=Target(
            revision=REVISION,
            arm=ARM,
            start_time=TIME,
            evidence=evidence,
            fingerprint=HASH,
            reason="PromotedAnyway",
            message=2 * SENTENCE,
            at_once=SENTENCE,
            request="promote-anyway=5d41402abc@20261121T120000Z-abcd",
            stands_since=TIME,
            ready=16,
            surge="Withdrawn",
            surge_waits_since=TIME,
        ),
        progress=PoolProgress(step="Measuring", message=2 * SENTENCE, because=2 * SENTENCE),
        expected=ExpectedTraffic(revision=REVISION, run=RUN, verify_tokens=64, crossover=47.125, loads=24 * (load,)),
        degraded=Degraded(reason="AcceptanceDropped", message=2 * SENTENCE, since=TIME, revision=REVISION),
        taken_down=(
            TakenDown(revision=REVISION, arm=ARM, reason="Crashed", times=2, since=TIME),
            *(MOST_TAKEN_DOWN - 1) * (down,),
        ),
        handled=Handled(**{one.name: "5d41402abc@20261121T120000Z-abcd" for one in fields(Handled)}),
        retried=Retried(question=HASH, attempt=11, token="20261121T120000Z-abcd"),
        kept_speed=0.9812,
        attempts=12,
        borrowed=1,
        loan=Loan(run=RUN, since=TIME, waiting_since=TIME, in_vain=3, not_before=TIME),
        holds=(
            Hold(
                revision=REVISION,
                reason="RolledBack",
                arm=ARM,
                request="rollback=5d41402abc@20261121T120000Z-abcd",
                run=RUN,
                fingerprint=HASH,
                deadline_seconds=1800,
            ),
        ),
    )


def size(memory: Any) -> int:
    return len(json.dumps(memory, separators=(",", ":")))


def test_the_memory_of_a_pool_is_small() -> None:
    pool = to_status(largest())
    assert pool["internal"].keys() == {slot.wire for slot in slots(PoolStatus) if slot.internal}, "all of it"
    assert size(pool["internal"]) + sum(size(held["internal"]) for held in pool["holds"]) <= LARGEST


def conditions(pool: Any) -> dict[str, str]:
    return {one["type"]: f"{one['status']} {one['reason']}" for one in pool["conditions"]}


def test_each_pool_has_conditions_of_its_own() -> None:
    """The whole says of two pools what is true of the worse one."""
    world = World()
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    while not world.outcome("latency"):
        world.round_ends("latency")
    world.servers_ready()
    assert (world.condition("Decided"), world.condition("Measuring")) == ("False Undecided", "True Measuring")
    assert conditions(world.pool("latency")) == {
        "Ready": "True Serving",
        "Measuring": "False NothingToMeasure",
        "Decided": "True AllDecided",
        "Promoted": "True AllPromoted",
    }
    assert conditions(world.pool("throughput")) == {
        "Ready": "True Serving",
        "Measuring": "True Measuring",
        "Decided": "False Undecided",
        "Promoted": "False NotDecided",
    }
    decided = next(one for one in world.pool("latency")["conditions"] if one["type"] == "Decided")
    assert decided["message"] == f"Promote, {world.pool('latency')['verdict']['evidence']['run']}"
    world.wait(60)
    assert next(one for one in world.pool("latency")["conditions"] if one["type"] == "Decided") == decided


def test_a_pools_transition_is_its_own() -> None:
    """That the other pool has lost its servers moves no time of this one."""
    world = World()
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    before = world.pool("latency")["conditions"]
    world.server_lost("throughput")
    world.wait(1)
    (ready, *_), (was, *_) = world.pool("latency")["conditions"], before
    assert (world.condition("Ready"), ready) == ("False ServersStarting", was)
    assert conditions(world.pool("throughput"))["Ready"] == "False ServersStarting"
