"""Models and prompts that are on this machine: where, and by which commit evidence names them."""

import json
import struct
from pathlib import Path

import pytest
from tests.support.running import TARGET

from paceline.core import Dataset, Model
from paceline.fetching import Artifact
from paceline.measure.models import MissingError, file_of, in_directory, name_commit
from paceline.pods.fetch import local

COMMIT = "a1" * 20
HUB = "hf://Qwen/Qwen3-8B"
CLAIM = "pvc://models/qwen/Qwen3-8B"


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(TARGET))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    return folder


def test_a_hub_clients_cache_names_the_commit(tmp_path: Path) -> None:
    repository = tmp_path / "models--Qwen--Qwen3-8B"
    place = put(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    found = in_directory([Model(source=HUB)], [], tmp_path)
    assert (found.commits[HUB, "main"], found.places[HUB, "main"]) == (COMMIT, place)
    assert found.facts.keys() == {HUB}


def test_what_was_downloaded_before_is_found_without_a_network(tmp_path: Path) -> None:
    model = Model(source=HUB)
    place = put(tmp_path / "hub" / "models--Qwen--Qwen3-8B" / "snapshots" / COMMIT)
    name_commit(tmp_path / "hub", model.address, model.revision, COMMIT)
    for directory in (tmp_path, tmp_path / "hub"):
        assert in_directory([model], [], directory).places[HUB, "main"] == place


def test_a_model_of_a_bucket_is_below_the_buckets_name(tmp_path: Path) -> None:
    place = put(tmp_path / "heads" / "qwen" / "eagle3")
    model = Model(source="gs://heads/qwen/eagle3")
    assert in_directory([model], [], tmp_path).places[model.source, "main"] == place


def test_a_folder_has_the_commit_that_the_file_names(tmp_path: Path) -> None:
    put(tmp_path / "Qwen" / "Qwen3-8B")
    found = in_directory([Model(source=HUB, revision=COMMIT)], [], tmp_path)
    assert found.commits[HUB, COMMIT] == COMMIT


def test_a_model_on_a_claim_has_the_commit_that_the_cluster_gives_it(tmp_path: Path) -> None:
    put(tmp_path / "qwen" / "Qwen3-8B")
    model = Model(source=CLAIM)
    there = local.list_local_files(Artifact(source=model.address), tmp_path).pinned.commit
    assert in_directory([model], [], tmp_path).commits[CLAIM, "main"] == there


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=f"{HUB} at main "):
        in_directory([Model(source=HUB)], [], tmp_path)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("configMap://prompts/chat.jsonl", "prompts/chat.jsonl"),
        ("pvc://prompts/of/chat.jsonl", "of/chat.jsonl"),
        ("hf://datasets/a/b/chat.jsonl", "a/b/chat.jsonl"),
        ("hf://datasets/a/b/chat.jsonl", "datasets--a--b/snapshots/main/chat.jsonl"),
    ],
)
def test_prompts_have_their_file(tmp_path: Path, source: str, path: str) -> None:
    dataset = Dataset(name="chat", source=source, requests=8, max_tokens=8)
    with pytest.raises(MissingError, match=source):
        file_of(dataset, tmp_path)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("{}")
    assert file_of(dataset, tmp_path) == tmp_path / path


def test_prompts_of_a_cluster_are_to_be_named() -> None:
    dataset = Dataset(name="chat", source="configMap://prompts/chat.jsonl", requests=8, max_tokens=8)
    with pytest.raises(MissingError, match="--prompts chat=FILE"):
        file_of(dataset, None)
