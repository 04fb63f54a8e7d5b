"""The table of `make chaos` is whole, and its report says what did not converge."""

from collections import Counter

from tests.cluster.chaos import report
from tests.cluster.chaos.table import ALONE, PEERS, QUIET, SCENARIOS, Lane

FOUND = {"seed": 1, "seconds": 60, "notes": ["in round 0"], "commit": "0123abcd"}


def test_each_of_the_23_scenarios_of_aiperf_has_one_of_ours() -> None:
    assert len(PEERS) == 23
    assert set(PEERS) == {scenario.peer for scenario in SCENARIOS.values()} - {""}


def test_names_are_unique() -> None:
    assert max(Counter(scenario.name for scenario in (*QUIET, *ALONE)).values()) == 1


def test_at_least_twenty_runs_have_a_sigkill() -> None:
    kills = Counter[str]()
    for scenario in SCENARIOS.values():
        kills[scenario.sigkill] += scenario.seeds if scenario.sigkill else 0
    assert kills.total() >= 20
    assert {"operator", "benchmark pod", "measured server", "kubelet", "containerd"} <= kills.keys()


def test_what_touches_the_operator_runs_one_at_a_time() -> None:
    assert {scenario.lane for scenario in QUIET} == {Lane.OWN}
    assert Lane.OWN not in {scenario.lane for scenario in ALONE}


def test_the_report_counts_what_converged_and_tells_what_did_not() -> None:
    good = {"scenario": "etcd-killed", "wrong": "", **FOUND}
    bad = {"scenario": "quota", "wrong": "Traceback\nwaited 420 s in vain for a|b", **FOUND}
    text = report.text([bad, good])
    assert "**1 of 2 runs converged; 1 of them had a SIGKILL.**" in text
    assert "| **not**: waited 420 s in vain for a/b |" in text
    assert text.index("quota") < text.index("| etcd-killed")
