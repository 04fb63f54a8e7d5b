"""Status is read leniently and written as it was: the codec, and the records of both kinds."""

import math
from dataclasses import field
from typing import Annotated, Any, Literal

import pytest

from paceline.api.crd import CRD_KINDS, schema
from paceline.api.round import PointRecord, ReplicateRecord, Round
from paceline.core.record import (
    ALWAYS,
    INSIDE,
    INTERNAL,
    Number,
    Number2,
    from_status,
    inner,
    is_record,
    record,
    slots,
    to_camel,
    to_status,
)


@record
class Part:
    name: str
    """Required: it is there whatever it is."""


@record
class Whole:
    """What a status may be made of."""

    why: Annotated[str, ALWAYS] = ""
    note: str = ""
    count: int | None = None
    seen: bool = False
    speed: Number | None = None
    gap: Number2 | None = None
    shares: tuple[Number, ...] = ()
    parts: tuple[Part, ...] = ()
    part: Part | None = None
    kind: Literal["a", "b"] | None = None
    tries: Annotated[int | None, INTERNAL] = None
    """Memory."""
    facts: Annotated[dict[str, Any], INTERNAL] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("p95_ttft", "p95TTFT"),
        ("mean_e2e", "meanE2E"),
        ("rest_sha256", "restSHA256"),
        ("sha256", "sha256"),
        ("sm_mhz", "smMHz"),
        ("most_sm_mhz", "mostSMMHz"),
        ("gpu_model", "gpuModel"),
        ("try_", "try"),
    ],
)
def test_a_name_on_the_wire_follows_from_the_fields(name: str, wire: str) -> None:
    assert to_camel(name) == wire


def test_what_is_as_by_default_is_left_out_unless_it_is_always_written() -> None:
    assert to_status(Whole()) == {"why": ""}
    assert to_status(Whole(parts=(Part(name=""),))) == {"why": "", "parts": [{"name": ""}]}


def test_fractions_are_decimal_strings() -> None:
    whole = Whole(why="x", count=0, speed=1234.5678, gap=0.5, shares=(0.75, 1 / 3))
    said = {"why": "x", "count": 0, "speed": "1234.57", "gap": "0.50", "shares": ["0.75", "0.333333"]}
    assert to_status(whole) == said
    assert to_status(from_status(Whole, said)) == said


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (None, Whole()),
        ("nonsense", Whole()),
        ({"of": "a later release"}, Whole()),
        ({"why": None, "parts": None, "part": None}, Whole()),
        ({"count": "7", "parts": "none", "seen": "true"}, Whole(count=7)),
        ({"part": {}}, Whole(part=Part(name=""))),
    ],
)
def test_whatever_a_release_has_written_is_read(said: Any, read: Whole) -> None:
    assert from_status(Whole, said) == read


def test_memory_stands_inside_and_nowhere_else() -> None:
    whole = Whole(why="x", tries=2, facts={"layers": 48, "architectures": ["A", "B"]})
    said = {"why": "x", "internal": {"tries": 2, "facts": {"layers": 48, "architectures": ["A", "B"]}}}
    assert to_status(whole) == said
    assert from_status(Whole, said) == whole
    assert from_status(Whole, {"why": "x", "tries": 2}) == Whole(why="x")
    assert from_status(Whole, {"why": "x", "internal": ["of a later release"]}) == Whole(why="x")


@pytest.mark.parametrize("garbage", ["", "fast", "nan", "inf", True, [1]])
def test_a_number_that_is_none_is_told_from_one_that_is_not_there(garbage: Any) -> None:
    speed = from_status(Whole, {"speed": garbage}).speed
    assert speed is not None
    assert math.isnan(speed)
    assert from_status(Whole, {}).speed is None


@pytest.mark.parametrize("kind", [kind for kind in CRD_KINDS.values() if kind.status], ids=lambda kind: kind.name)
def test_every_field_of_the_crd_is_one_of_the_records(kind: Any) -> None:
    def check(record_: type, said: dict[str, Any]) -> None:
        memory = said["properties"].get(INSIDE, {"properties": {}})["properties"]
        assert list(memory) == [slot.wire for slot in slots(record_) if slot.internal]
        api = [slot.wire for slot in slots(record_) if not slot.internal]
        assert list(said["properties"]) == [*api, *[INSIDE] * bool(memory)]
        for slot in slots(record_):
            of, below = inner(slot.type), (memory if slot.internal else said["properties"])[slot.wire]
            of, below = (inner(of.__args__[0]), below["items"]) if below["type"] == "array" else (of, below)
            if is_record(of):
                check(of, below)

    written = kind.status or kind.spec
    check(written, schema(written))


def test_a_round_of_a_release_that_knew_less() -> None:
    said = {"round": 3, "try": 1, "job": "run-3-1", "points": [{"arm": "wide", "asked": 6}], "of": "another"}
    read = from_status(Round, said)
    assert read == Round(round=3, try_=1, job="run-3-1", points=(PointRecord(arm="wide", asked=6),))
    assert read.replicates == () == ReplicateRecord().differs
