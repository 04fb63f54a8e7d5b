"""An address of a model or of prompts, and what it names."""

import pytest

from paceline.core import Scheme, Source
from paceline.core.names import image_path, snapshot_path

IMAGE = f"registry.example.com:5000/models/qwen@sha256:{'a1' * 32}"
ADDRESSES = [
    ("hf://Qwen/Qwen3-8B", Scheme.HUB, "Qwen/Qwen3-8B", ""),
    ("hf://datasets/owner/prompts/data/code.jsonl", Scheme.HUB_DATASET, "owner/prompts", "data/code.jsonl"),
    ("hf://datasets/name", Scheme.HUB, "datasets/name", ""),
    ("pvc://models/heads/eagle3", Scheme.CLAIM, "models", "heads/eagle3"),
    (f"oci://{IMAGE}", Scheme.IMAGE, IMAGE, ""),
    (f"oci://{IMAGE}/models/qwen", Scheme.IMAGE, IMAGE, "models/qwen"),
    ("s3://models/heads/eagle3", Scheme.S3, "models", "heads/eagle3"),
    ("gs://team_models/eagle3", Scheme.GCS, "team_models", "eagle3"),
    ("configMap://prompts/code.jsonl", Scheme.CONFIG_MAP, "prompts", "code.jsonl"),
    ("builtin://swe", Scheme.BUILTIN, "swe", ""),
]


@pytest.mark.parametrize(("text", "scheme", "name", "path"), ADDRESSES)
def test_an_address_has_a_scheme_a_name_and_a_path(text: str, scheme: Scheme, name: str, path: str) -> None:
    source = Source.parse(text)
    assert source == Source(scheme=scheme, name=name, path=path)
    assert str(source) == text


@pytest.mark.parametrize(
    "text",
    ["", "Qwen/Qwen3-8B", "hf://a", "hf://a/b/c", "hf://a/..", "hf://../b", "hf://datasets/a/b/../c", "pvc://claim",
     "pvc://claim/../path", "pvc://claim/a//b", "configMap://name", "builtin://", "s3://bucket", "gs://bucket/../x",
     "s3://Bucket/x", "hf://a/b\n",
     "oci://registry/models/qwen:v1", f"oci://{IMAGE}0", f"oci://{IMAGE}/..", f"oci://{IMAGE.upper()}"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address: write hf://OWNER/NAME, "):
        Source.parse(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("hf://Qwen/Qwen3-8B", "/models/hub/models--Qwen--Qwen3-8B/snapshots/c0"),
        ("gs://heads/team/a", "/models/hub/models--gs+heads+team+a/snapshots/c0"),
        ("hf://datasets/o/n/data/code.jsonl", "/models/hub/datasets--o--n/snapshots/c0/data/code.jsonl"),
        ("pvc://models/heads/eagle3", "/models/heads/eagle3"),
        (f"oci://{IMAGE}/models", f"{image_path(IMAGE)}/models"),
    ],
)
def test_the_place_on_the_cache_volume_follows_from_the_address(text: str, path: str) -> None:
    assert snapshot_path(text, "c0") == path


def test_an_image_has_its_digest_for_a_commit() -> None:
    assert Source.parse(f"oci://{IMAGE}/models").digest == "a1" * 32
    assert Source.parse("hf://Qwen/Qwen3-8B").digest == ""


def test_built_in_prompts_are_not_on_the_volume() -> None:
    with pytest.raises(ValueError, match="builtin://code is not on the cache volume"):
        snapshot_path("builtin://code", "")
