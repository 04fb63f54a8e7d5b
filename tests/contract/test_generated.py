"""What is generated is what lies there. Regenerate with `python -m tests.contract.make_…` and look at the diff."""

from pathlib import Path

import pytest
from tests.contract import (
    make_catalogues,
    make_chat_table,
    make_loads,
    make_profiles,
    make_prompt_index,
    make_vllm_metrics,
    make_vllm_words,
)

from paceline.pods.prompt_table import conversation_columns
from paceline_emulator.hub.prompts import chats

GENERATED = {
    **make_catalogues.files(),
    **make_profiles.files(),
    **make_loads.files(),
    make_prompt_index.TO: make_prompt_index.text(),
    make_vllm_metrics.TO: make_vllm_metrics.text(),
    make_vllm_words.TO: make_vllm_words.text(),
}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_file_is_current(path: Path) -> None:
    assert path.read_text() == GENERATED[path]


def test_the_table_of_the_hub_is_current() -> None:
    """By its rows: its bytes are those of a release of DuckDB."""
    assert [row["messages"] for row in conversation_columns(make_chat_table.TO, 1 << 20)] == chats()
