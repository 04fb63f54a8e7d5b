"""A prefetch's request → the environment variable of its container → the request."""

import json

import pytest

from paceline.core import Source
from paceline.fetching import Artifact, FetchRequest

COMMIT = "9cde165fe23b7db3dd39ea1dc7ede93d9f6f75a9"
REQUEST = FetchRequest(
    models=(
        Artifact(source=Source.parse("hf://Qwen/Qwen3-Coder-Next"), commit=COMMIT),
        Artifact(source=Source.parse("pvc://models/heads/eagle3")),
    ),
    datasets=(Artifact(source=Source.parse("hf://datasets/owner/prompts/data/code.jsonl"), revision="v2"),),
    path="/models",
    keep_revisions=3,
    in_use=(COMMIT,),
    user="team-a/coder",
    trust_remote_code=True,
)
WIRE = (
    '{"datasets": [{"revision": "v2", "source": "hf://datasets/owner/prompts/data/code.jsonl"}], '
    f'"inUse": ["{COMMIT}"], "keepRevisions": 3, '
    f'"models": [{{"commit": "{COMMIT}", "revision": "main", "source": "hf://Qwen/Qwen3-Coder-Next"}}, '
    '{"revision": "main", "source": "pvc://models/heads/eagle3"}], '
    '"path": "/models", "trustRemoteCode": true, "user": "team-a/coder"}'
)
"""As release 0.1.0 writes and reads it: the operator and the pod of another release meet during an upgrade."""


def test_the_wire_format_is_that_of_earlier_releases() -> None:
    assert REQUEST.to_json() == WIRE


def test_the_request_comes_back_as_it_was() -> None:
    assert FetchRequest.from_json(WIRE) == REQUEST


def test_a_request_without_datasets_does_not_name_them() -> None:
    request = FetchRequest(models=REQUEST.models)
    assert "datasets" not in json.loads(request.to_json())
    assert FetchRequest.from_json(request.to_json()) == request


def test_what_is_left_out_has_a_default() -> None:
    request = FetchRequest.from_json('{"models": [{"source": "hf://a/b"}]}')
    assert request == FetchRequest(models=(Artifact(source=Source.parse("hf://a/b")),))
    assert (request.path, request.keep_revisions, request.trust_remote_code) == ("/models", 2, False)


def test_what_a_newer_release_adds_is_ignored() -> None:
    newer = {**json.loads(WIRE), "priority": "high", "models": [{**m, "size": 1} for m in json.loads(WIRE)["models"]]}
    assert FetchRequest.from_json(json.dumps(newer)) == REQUEST


def test_one_revision_is_kept_at_least() -> None:
    assert FetchRequest.from_json('{"models": [], "keepRevisions": 0}').keep_revisions == 1


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", '{"models": 3}', '{"models": [{}]}', "[" * 100_000])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="PACELINE_FETCH "):
        FetchRequest.from_json(text)


@pytest.mark.parametrize("source", ["hf://datasets/a/b/c.json", "builtin://code", "configMap://a/b", "hf://a/../b"])
def test_a_model_is_of_the_hub_or_on_the_claim(source: str) -> None:
    with pytest.raises(ValueError, match=source):
        FetchRequest.from_json(json.dumps({"models": [{"source": source}]}))


def test_a_dataset_is_of_the_hub() -> None:
    with pytest.raises(ValueError, match="hf://a/b"):
        FetchRequest.from_json(json.dumps({"models": [], "datasets": [{"source": "hf://a/b"}]}))
