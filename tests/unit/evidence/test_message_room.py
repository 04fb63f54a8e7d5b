"""The message of a round: what decides nothing goes along where there is room."""

import pytest
from tests.unit.evidence.results import CUTS, result_of, with_clocks, with_positions, with_requests

from paceline.evidence import decode, encode
from paceline.evidence.message import (
    LONGEST,
    MORE,
    NO_ROOM,
    NO_ROOM_AT,
    NO_ROOM_CLOCKS,
    NO_ROOM_GOOD,
    NO_ROOM_MORE,
)


def test_medians_and_99th_percentiles_go_along_where_there_is_room() -> None:
    result = result_of(2, 16)
    (point, *_), (before, *_) = decode(encode(result)).replicates[1].points, result.replicates[1].points
    assert (point.p50_ttft, point.p99_tpot) == pytest.approx((before.p50_ttft, before.p99_tpot), rel=5e-3)
    assert point.p90_ttft == pytest.approx(before.p90_ttft, rel=5e-3)
    assert point.output_throughput == pytest.approx(before.output_throughput, rel=1e-4)
    assert decode(encode(result)).notes == ()


def test_and_where_there_is_none_the_round_says_so() -> None:
    read = decode(encode(result_of(2, 24)))
    (point, *_) = read.replicates[1].points
    assert (point.p50_ttft, point.p99_ttft, point.p50_tpot, point.p99_tpot) == (None, None, None, None)
    assert point.output_throughput is None
    assert None not in (point.mean_e2e, point.p99_itl, point.steady_throughput, point.fullness)
    assert [note.partition(":")[0] for note in read.notes] == [
        "the round's message had no room for throughput over the whole time, medians, 90th and 99th percentiles "
        "and draft tokens per step"
    ]


def test_acceptance_by_position_goes_along_where_there_is_room() -> None:
    result = with_positions(result_of(2, 4))
    read = decode(encode(result))
    assert read.notes == ()
    for before, after in zip(result.replicates[1].points, read.replicates[1].points, strict=True):
        assert after.accepted_at == pytest.approx(before.accepted_at, rel=1e-3)
    assert {point.accepted_at for point in read.replicates[0].points} == {()}


def test_positions_are_the_first_to_go_and_their_absence_is_told() -> None:
    """Eight of them are half as many numbers again: what decides nothing and is least asked for."""
    read = decode(encode(with_positions(result_of(2, 20))))
    assert read.notes == (NO_ROOM_AT,)
    (point, *_) = read.replicates[1].points
    assert point.accepted_at == ()
    assert point.p50_ttft is not None


@pytest.mark.parametrize(("arms", "workloads"), CUTS)
def test_48_points_with_positions_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    message = encode(with_positions(result_of(arms, workloads)))
    assert len(message) <= LONGEST
    assert {NO_ROOM, NO_ROOM_AT} <= set(decode(message).notes)


@pytest.mark.parametrize(("arms", "workloads"), [(2, 1), (3, 4), (2, 8)])
def test_what_is_told_of_requests_one_by_one_goes_along_where_there_is_room(arms: int, workloads: int) -> None:
    result = with_requests(with_positions(result_of(arms, workloads)))
    read = decode(encode(result))
    assert read.notes == ()
    for before, after in zip(result.replicates[1].points, read.replicates[1].points, strict=True):
        assert [getattr(after, name) for name in MORE] == pytest.approx([getattr(before, name) for name in MORE], 5e-3)
        assert after.goodput == pytest.approx(before.goodput, rel=1e-3)
    assert {point.worst_decile for point in read.replicates[0].points} == {None}


def test_goodput_was_asked_for_and_stays_longer_than_what_was_not() -> None:
    """Of 32 points: lengths and speed-ups by prompt go before medians do, goodput only after them."""
    read = decode(encode(with_requests(result_of(2, 16))))
    (point, *_) = read.replicates[1].points
    assert (point.p50_input, point.worst_decile) == (None, None)
    assert None not in (point.good_requests, point.good_tokens, point.p50_ttft, point.goodput)
    assert read.notes == (NO_ROOM_MORE,)


@pytest.mark.parametrize(("arms", "workloads"), CUTS)
def test_48_points_with_all_of_it_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    message = encode(with_clocks(with_positions(with_requests(result_of(arms, workloads)))))
    assert len(message) <= LONGEST
    read = decode(message)
    assert {NO_ROOM, NO_ROOM_AT, NO_ROOM_MORE} <= set(read.notes)
    kept = read.replicates[1].points[0].good_requests is not None
    assert kept == (NO_ROOM_GOOD not in read.notes)


@pytest.mark.parametrize(("arms", "workloads"), [(2, 1), (3, 4), (2, 16)])
def test_clocks_go_along_where_there_is_room(arms: int, workloads: int) -> None:
    result = with_clocks(result_of(arms, workloads))
    read = decode(encode(result))
    assert [one.clocks for one in read.replicates] == [one.clocks for one in result.replicates]
    assert NO_ROOM_CLOCKS not in read.notes


@pytest.mark.parametrize(("arms", "workloads"), CUTS)
def test_48_points_with_clocks_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    """They explain; what is judged goes first. That they stay behind is told."""
    result = with_clocks(with_positions(result_of(arms, workloads)))
    message = encode(result)
    assert len(message) <= LONGEST
    read = decode(message)
    assert (NO_ROOM_CLOCKS in read.notes) == ({one.clocks for one in read.replicates} == {None})
    assert (NO_ROOM_CLOCKS in read.notes) == (arms == 48)
