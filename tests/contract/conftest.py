"""Model directories that every test of a running emulator needs."""

from pathlib import Path

import pytest
from tests.contract.running import HEAD, TARGET, model


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("target"), TARGET)


@pytest.fixture(scope="session")
def head(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("head"), HEAD)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"
