"""The closed list of reasons, and conditions made of it."""

from datetime import UTC, datetime, timedelta

from tests.support.messages import Says

from paceline.api.reasons import ORDER, Cause, Reason, conditions, conditions_to_status
from paceline.core.record import to_status as as_json

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_the_worst_mark_of_a_condition_wins() -> None:
    marks = [Cause(Reason.Serving, "latency"), Cause(Reason.ServersStarting, "throughput"), Cause(Reason.Cached)]
    assert conditions(marks) == {
        "Ready": Cause(Reason.ServersStarting, "throughput"),
        "CacheReady": Cause(Reason.Cached),
    }


def test_the_message_names_every_pool_of_the_winning_reason() -> None:
    marks = [
        Cause(Reason.NoCapacity, "latency", "0/2 nodes are available"),
        Cause(Reason.Serving, "chat"),
        Cause(Reason.NoCapacity, "throughput"),
    ]
    (ready,) = conditions_to_status(marks, [], 3, NOW)
    assert as_json(ready) == {
        "type": "Ready",
        "status": "False",
        "reason": "NoCapacity",
        "message": "no node has room for a server: latency: 0/2 nodes are available; throughput",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }


def test_a_transition_is_a_change_of_status_not_of_reason() -> None:
    later = NOW + timedelta(minutes=5)
    first = conditions_to_status([Cause(Reason.ServersStarting)], [], 1, NOW)
    second = conditions_to_status([Cause(Reason.Crashing)], first, 2, later)
    third = conditions_to_status([Cause(Reason.Serving)], second, 2, later)
    assert [(c.reason, c.last_transition_time) for (c,) in (first, second, third)] == [
        ("ServersStarting", "2026-11-21T12:00:00Z"),
        ("Crashing", "2026-11-21T12:00:00Z"),
        ("Serving", "2026-11-21T12:05:00Z"),
    ]


def test_what_nobody_says_is_absent() -> None:
    before = conditions_to_status([Cause(Reason.RollingOut), Cause(Reason.Serving)], [], 1, NOW)
    assert [condition.type for condition in before] == ["Ready", "Reconciling"]
    assert [condition.type for condition in conditions_to_status([Cause(Reason.Serving)], before, 1, NOW)] == ["Ready"]


def test_reconciling_and_stalled_are_never_false() -> None:
    """kstatus takes their presence for their truth."""
    assert {r.value.status for r in Reason if r.value.condition in {"Reconciling", "Stalled"}} == {True}


def test_every_condition_has_a_place_in_status() -> None:
    assert {reason.value.condition for reason in Reason} == set(ORDER)


def test_within_a_condition_reasons_differ() -> None:
    shown = [(reason.value.condition, reason.text) for reason in Reason]
    assert len(set(shown)) == len(shown)


def test_a_pool_has_conditions_of_its_own_causes(says: Says) -> None:
    """In its own words, without those of the whole; and with the times of its own transitions."""
    marks = [
        Cause(Reason.Serving, "latency", "wide"),
        Cause(Reason.ServersStarting, "throughput", "1 of 2 servers"),
        Cause(Reason.ServerFailed, "throughput", "exit code 1"),
        Cause(Reason.Cached),
        Cause(Reason.NothingToMeasure, "latency"),
    ]
    latency = conditions_to_status(marks, [], 3, NOW, "latency")
    told = [f"{one.type} {one.status} {one.reason}" for one in latency]
    assert told == ["Ready True Serving", "Measuring False NothingToMeasure"]
    (throughput,) = conditions_to_status(marks, [], 3, NOW, "throughput")
    assert (throughput.status, throughput.message) == ("False", "1 of 2 servers")
    whole = {one.type: one.message for one in conditions_to_status(marks, [], 3, NOW)}
    assert whole["Ready"].endswith(": throughput: 1 of 2 servers")
    says(*(one.message for one in latency), whole["Ready"])
    (again, _) = conditions_to_status(marks, latency, 4, NOW + timedelta(hours=1), "latency")
    assert (again.observed_generation, again.last_transition_time) == (4, latency[0].last_transition_time)
