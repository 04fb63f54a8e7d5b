"""Run by `make test-vllm DIR=…` and `make test-sglang-jax DIR=…` alone: they need the gigabytes of such a directory,
and minutes for every start. See dev/test-on-cpu."""

import os
from collections.abc import Callable

import pytest
from tests.real import measured, without_cluster
from tests.real.measured import Measured
from tests.real.without_cluster import Told
from tests.support.tables import section

NEEDED = {"test_vllm": "VLLM_DIR", "test_sglang_jax": "SGLANG_JAX_DIR"}
collect_ignore_glob = [f"{begins}*.py" for begins, variable in NEEDED.items() if variable not in os.environ]
kept: pytest.StashKey[list[Measured | Told]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[kept] = []


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Callable[[Measured | Told], Measured | Told]:
    """What was measured goes into its report, whatever the tests say of it."""

    def keep(one: Measured | Told) -> Measured | Told:
        request.config.stash[kept].append(one)
        return one

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for one in config.stash[kept]:
        text = measured.report(one) if isinstance(one, Measured) else without_cluster.report(one)
        one.report.write_text(section(one.report.read_text(), text))
        terminalreporter.section(str(one.report))
        terminalreporter.write_line(text)
