"""One API server for all tests here, with our CRDs in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apiserver import Running, start

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("apiserver"))
    try:
        running.install(ROOT / "crds")
        yield running
    finally:
        running.stop()
