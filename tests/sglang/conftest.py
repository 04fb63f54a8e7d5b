"""Run by `make test-sglang DIR=…` alone: it needs six gigabytes that only that has. See dev/test-sglang."""

import os
from collections.abc import Iterator

import pytest
from tests.sglang.measured import Measured, measured
from tests.sglang.real import (
    NAMESPACE,
    PARITY,
    ROOT,
    Deployed,
    claim_of_the_directory,
    deployed,
    kubectl,
    tiny,
    told,
    trained,
)

collect_ignore_glob = [] if "SGLANG_DIR" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def namespace() -> Iterator[None]:
    """A namespace of our own with the hub that the prefetch asks."""
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait", "--timeout=180s")
    kubectl("create", "namespace", NAMESPACE)
    kubectl("apply", "-f", str(ROOT / "dev/hub.yaml"))
    kubectl("rollout", "status", "deployment/hub", "--timeout=120s")
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=180s")


@pytest.fixture(scope="module")
def random_head(namespace: None) -> Iterator[Deployed]:
    """The head's weights are noise, and what it can propose the target never says (paceline_emulator/hub/models.py)."""
    yield from deployed(tiny("random-head", parity=PARITY))


@pytest.fixture(scope="module")
def forced_length(namespace: None) -> Iterator[Deployed]:
    """SGLang itself pretends, on servers that speculate, that so many tokens are accepted. The variable for it is
    refused in a resource; the image has a python3 that sets it (dev/sglang/python3)."""
    yield from deployed(tiny("forced-length", PACELINE_TEST_ACCEPTANCE_LENGTH="2.5"))


@pytest.fixture(scope="module")
def claim(namespace: None) -> Iterator[None]:
    yield from claim_of_the_directory("sglang")


@pytest.fixture(scope="module")
def decided(claim: None) -> Iterator[Deployed]:
    """Real speculation: one draft that is nearly always right, one that hardly ever is. Three rounds, or six."""
    yield from deployed(trained(), patience_seconds=3000)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    unpinned = str(ROOT / "dev" / "sglang" / "unpinned")
    return _told(measured("traffic", tmp_path_factory.mktemp("traffic"), PYTHONPATH=unpinned))


@pytest.fixture(scope="module")
def eagle3(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return _told(measured("eagle3", tmp_path_factory.mktemp("eagle3")))


def _told(one: Measured) -> Measured:
    told.extend(one.said.splitlines())
    return one


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if told:
        terminalreporter.section("the real SGLang, as the operator read it")
    for line in told:
        terminalreporter.write_line(line)
