"""For all tests: properties are tried on the same examples each time, and a slow machine is no failure.

Four processes share them (`make test`), file by file. Stories on the cluster and what runs in real time mostly wait:
the rest is run meanwhile, at a lower priority.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.support.golden import WRITE
from tests.support.messages import Messages, Says
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("paceline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paceline")


IN_REAL_TIME = ("tests/unit/round/", "tests/unit/measure/", "tests/contract/", "tests/api/test_health.py")
"""Also figures of theirs are tested, which must not tell of what runs beside them."""
GOES_FIRST, GIVES_WAY = -5, 10
"""Niceness of what runs in real time, and of what only computes."""
STORIES = "tests/cluster/"
SLOW = (
    *(f"tests/{name}/" for name in (
        "alerts", "api", "browser", "conformance", "contract", "dashboards", "docs", "fault",
    )),
    *(f"tests/unit/{name}/" for name in (
        "fetch", "foreign", "gpu", "measure", "migration", "release", "report", "round",
    )),
    *(f"tests/gate/test_{name}.py" for name in (
        "closed_loops", "command_process", "error_rates", "open_loops", "schedules", "sized",
    )),
    *(f"tests/plan/test_{name}.py" for name in (
        "abort", "again", "baseline_down", "beside_a_hold", "borrow", "borrow_histories", "down", "earned", "evidence",
        "failures", "fields", "forged", "guard", "guard_properties", "history", "idle", "imported", "limits",
        "odd_numbers", "places", "profiles", "promote_anyway", "properties", "pull", "rollback", "search",
        "search_edits", "size", "stale", "stalled", "states", "stories", "surge", "transitions", "trouble", "twice",
        "written",
    )),
    *(f"tests/unit/{name}.py" for name in (
        "api/test_commands", "api/test_round_trip", "cli/test_desk", "cli/test_errors", "cli/test_gate_name",
        "cli/test_operator_logs", "cli/test_profiles", "cli/test_top", "cli/test_watch",
        "controller/test_watch", "emulator/test_apart", "engines/test_grid", "engines/test_known_problems",
        "engines/test_toy_engine", "evidence/test_tampering", "examples/test_flags",
        "examples/test_interruptions", "examples/test_plan",
        "kube/test_leading", "kube/test_transport", "preflight/test_hooks", "search/test_bounds",
    )),
)  # fmt: skip
"""What `make check` leaves out: a server's start, a whole history, or more than a few seconds."""
CHECK = "not slow and not cluster"


class Lanes(LoadScopeScheduling):
    """One process for the stories on the cluster, which must not meet each other; whichever is free takes the next file
    of all others."""

    def _split_scope(self, nodeid: str) -> str:
        return STORIES if nodeid.startswith(STORIES) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    config.option.loadscopereorder = False  # it would begin with the files of most tests
    return Lanes(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The stories take longest, and begin first."""
    items.sort(key=lambda item: not item.nodeid.startswith(STORIES))
    for item in items:
        if item.nodeid.startswith(STORIES):
            item.add_marker("cluster")
        elif item.nodeid.startswith(SLOW):
            item.add_marker("slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collecting takes longer than all that `make check` runs."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    return (config.option.markexpr == CHECK and f"{path}/".startswith((*SLOW, STORIES))) or None


def pytest_runtest_logstart(nodeid: str) -> None:
    """Before a test and its fixtures."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with suppress(PermissionError):  # only root may take a higher one again
            os.setpriority(os.PRIO_PROCESS, 0, _niceness(nodeid))


def _niceness(nodeid: str) -> int:
    if nodeid.startswith(STORIES):
        return 0
    return GOES_FIRST if nodeid.startswith(IN_REAL_TIME) else GIVES_WAY


MESSAGES = pytest.StashKey[Messages]()


def pytest_configure(config: pytest.Config) -> None:
    if WRITE and (config.option.numprocesses or "PYTEST_XDIST_WORKER" in os.environ):
        raise pytest.UsageError("write goldens without -n")
    config.stash[MESSAGES] = Messages()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if WRITE:
        config = session.config
        whole = not config.option.keyword and not any("::" in argument for argument in config.args)
        config.stash[MESSAGES].write([item.nodeid for item in session.items], whole)


@pytest.fixture
def says(request: pytest.FixtureRequest) -> Iterator[Says]:
    """Holds messages of this test to tests/messages.json."""
    with request.config.stash[MESSAGES].of(request.node.nodeid) as says:
        yield says


FAULTS = "faults"
"""The property of a test that has run a scenario of tests/fault/matrix.py: its tally."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was run of scenarios x steps x faults; the properties come with each report, from whichever process."""
    done = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    found = [value for one in done for name, value in getattr(one, "user_properties", ()) if name == FAULTS]
    if found:
        from tests.fault.matrix import Tally, summary

        terminalreporter.write_line(summary([Tally(**one) for one in found]))
