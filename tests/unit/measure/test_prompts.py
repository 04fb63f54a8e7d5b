"""Prompts that are in the cluster, as files of this machine."""

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.support.messages import Says

from paceline.cli import main
from paceline.core import Dataset
from paceline.measure.models import MissingError
from paceline.measure.prompts import local_prompt_files

CHATS = Dataset(name="chats", source="configMap://traffic/chats.jsonl", requests=8, max_tokens=8)
REPLAY = Dataset(name="replay", source="configMap://traffic/chats.jsonl", requests=8, max_tokens=8)
TABLE = Dataset(name="table", source="configMap://traffic/logs.parquet", requests=8, max_tokens=8)
LOGS = Dataset(name="logs", source="pvc://team-data/logs.jsonl", requests=8, max_tokens=8)
LINE = '{"prompt": "Sort a list."}\n'


def config_map(name: str = "traffic", **fields: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name}, **fields}


def test_a_config_map_of_the_file_is_read(tmp_path: Path) -> None:
    """Of two datasets with one source both."""
    objects = [config_map("other", data={"chats.jsonl": "no"}), config_map(data={"chats.jsonl": LINE})]
    found = local_prompt_files([CHATS, REPLAY], {}, objects, None, tmp_path)
    assert {place.read_text() for place in found.values()} == {LINE}
    assert found.keys() == {(CHATS.source, "main")}


def test_a_table_stays_one_by_the_end_of_its_name(tmp_path: Path) -> None:
    packed = base64.encodebytes(b"PAR1" * 40).decode()  # in lines, as kubectl does not write it but YAML may
    (place,) = local_prompt_files(
        [TABLE], {}, [config_map(binaryData={"logs.parquet": packed})], None, tmp_path
    ).values()
    assert (place.suffix, place.read_bytes()) == (".parquet", b"PAR1" * 40)


def test_a_file_that_is_named_stands_before_all_others(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("prompt\nSort a list.\n")
    found = local_prompt_files(
        [CHATS, REPLAY], {"replay": own}, [config_map(data={"chats.jsonl": LINE})], None, tmp_path
    )
    assert set(found.values()) == {own}


@pytest.mark.parametrize(
    ("named", "objects"),
    [
        ({}, []),
        ({"log": "x"}, []),
        ({"logs": "nowhere"}, []),
    ],
)
def test_what_is_not_there_is_named(
    tmp_path: Path, named: dict[str, str], objects: list[dict[str, Any]], says: Says
) -> None:
    with pytest.raises(MissingError) as refused:
        local_prompt_files([LOGS, TABLE], {name: Path(file) for name, file in named.items()}, objects, None, tmp_path)
    says(refused.value)


def test_packed_data_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"traffic/logs\.parquet: binaryData "):
        local_prompt_files([TABLE], {}, [config_map(binaryData={"logs.parquet": "%%%"})], None, tmp_path)


def test_the_option_has_a_name_and_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["measure", "question.yaml", "--prompts", "logs.jsonl"])
    assert "NAME=FILE" in capsys.readouterr().err
