"""What is generated is what lies there. Regenerate with `python -m tests.contract.make_…` and look at the diff."""

from pathlib import Path

import pytest
from tests.contract import make_catalogues, make_loads, make_profiles, make_prompt_index, make_vllm_metrics

GENERATED = {
    **make_catalogues.files(),
    **make_profiles.files(),
    **make_loads.files(),
    make_prompt_index.TO: make_prompt_index.text(),
    make_vllm_metrics.TO: make_vllm_metrics.text(),
}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_file_is_current(path: Path) -> None:
    assert path.read_text() == GENERATED[path]
