"""For all tests: properties are tried on the same examples each time, and a slow machine is no failure.

Two processes share them (`make test`): stories on the cluster mostly wait, so the rest is run meanwhile.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("paceline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paceline")


IN_REAL_TIME = ("tests/unit/round/", "tests/unit/measure/")
"""Whichever process is free first takes the next of their files: they take long, and each by itself."""


class TwoLanes(LoadScopeScheduling):
    """One process for the stories on the cluster, which must not meet each other, and one for the rest."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(IN_REAL_TIME):
            return nodeid.partition("::")[0]
        return "cluster" if nodeid.startswith("tests/cluster/") else "rest"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TwoLanes:
    config.option.loadscopereorder = False  # the two long ones first
    return TwoLanes(config, log)
