"""For all tests: properties are tried on the same examples each time, and a slow machine is no failure.

Two processes share them (`make test`): stories on the cluster mostly wait, so the rest is run meanwhile.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CLUSTER = Path(__file__).parent / "cluster"

settings.register_profile("paceline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paceline")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group("cluster" if CLUSTER in item.path.parents else "rest"))
