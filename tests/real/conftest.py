"""Run by `make test-vllm DIR=…` and `make test-sglang-jax DIR=…` alone: they need the gigabytes of such a directory,
and minutes for every start. See dev/test-on-cpu."""

import os
from collections.abc import Callable

import pytest
from tests.real.measured import Measured, report

NEEDED = {"test_vllm.py": "VLLM_DIR", "test_sglang_jax.py": "SGLANG_JAX_DIR"}
collect_ignore = [name for name, variable in NEEDED.items() if variable not in os.environ]
measured: pytest.StashKey[list[Measured]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[measured] = []


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Callable[[Measured], Measured]:
    """What was measured goes into the report, whatever the tests say of it."""

    def keep(one: Measured) -> Measured:
        request.config.stash[measured].append(one)
        return one

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for one in config.stash[measured]:
        text = report(one)
        one.report.write_text(text)
        terminalreporter.section(str(one.report))
        terminalreporter.write_line(text)
