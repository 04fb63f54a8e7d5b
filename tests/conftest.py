"""For all tests: properties are tried on the same examples each time, and a slow machine is no failure.

Three processes share them (`make test`): stories on the cluster and what runs in real time mostly wait, so the rest is
run meanwhile, at a lower priority.
"""

import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("paceline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paceline")


IN_REAL_TIME = ("tests/unit/round/", "tests/unit/measure/", "tests/contract/", "tests/api/test_health.py")
"""Whichever process is free first takes the next of their files: they take long, and each by itself."""
GOES_FIRST, GIVES_WAY = -5, 10
"""Niceness of what runs in real time, and of what only computes: figures must not tell of what runs beside them."""


class Lanes(LoadScopeScheduling):
    """One process for the stories on the cluster, which must not meet each other, one for what computes, and files in
    real time for the third and for who has ended."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(IN_REAL_TIME):
            return nodeid.partition("::")[0]
        return "cluster" if nodeid.startswith("tests/cluster/") else "rest"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    config.option.loadscopereorder = False  # the two long ones first
    return Lanes(config, log)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Before a test and its fixtures."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with suppress(PermissionError):  # only root may take a higher one again
            os.setpriority(os.PRIO_PROCESS, 0, _niceness(nodeid))


def _niceness(nodeid: str) -> int:
    if nodeid.startswith("tests/cluster/"):
        return 0
    return GOES_FIRST if nodeid.startswith(IN_REAL_TIME) else GIVES_WAY


FAULTS = "faults"
"""The property of a test that has run a scenario of tests/fault/matrix.py: its tally."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was run of scenarios x steps x faults; the properties come with each report, from whichever process."""
    done = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    found = [value for one in done for name, value in getattr(one, "user_properties", ()) if name == FAULTS]
    if found:
        from tests.fault.matrix import Tally, summary

        terminalreporter.write_line(summary([Tally(**one) for one in found]))
