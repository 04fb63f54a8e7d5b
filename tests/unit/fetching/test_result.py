"""A prefetch's result → the termination message → the result."""

import base64
import hashlib
import json
import random
import zlib
from dataclasses import replace

import pytest

from paceline.core.names import snapshot_path
from paceline.fetching import FetchedModel, FetchResult
from paceline.preflight import model_facts
from paceline_emulator.hub.models import QWEN3_CODER_NEXT


def fetched(count: int) -> FetchResult:
    sources = [f"hf://owner/model-{number}" for number in range(count)]
    commit = "a" * 40
    return FetchResult(
        models=tuple(
            FetchedModel(
                source=source,
                revision="main",
                commit=commit,
                bytes=159_483_924_480,
                path=f"/models/hub/models--{source[5:].replace('/', '--')}/snapshots/{commit}",
            )
            for source in sources
        ),
        facts={source: model_facts(QWEN3_CODER_NEXT, 159_000_000_000) for source in sources},
    )


@pytest.mark.parametrize("odd", [{"num_hidden_layers": 2 * 10**9}, {"dtype": "d" * 50_000}, {"vocab_size": 10**400}])
def test_what_no_model_has_is_not_read_of_a_message_either(odd: dict[str, object]) -> None:
    value = json.loads(fetched(1).to_message())
    value["facts"]["hf://owner/model-0"] |= odd
    with pytest.raises(ValueError, match=f"{next(iter(odd))} is"):
        FetchResult.from_message(json.dumps(value))


def test_packed_facts_are_unpacked_up_to_a_size() -> None:
    """4096 bytes of them would be four million."""
    value = json.loads(fetched(1).to_message())
    del value["facts"]
    value["packed"] = base64.b85encode(zlib.compress(b"[" + b"{}," * 1_000_000 + b"{}]", 9)).decode()
    with pytest.raises(ValueError, match="not the message of a finished fetch"):
        FetchResult.from_message(json.dumps(value))


def test_the_message_comes_back_as_it_was() -> None:
    sent = fetched(2)
    text = sent.to_message()
    assert FetchResult.from_message(text) == sent
    assert len(text) < 2000


def datasets(count: int) -> tuple[FetchedModel, ...]:
    sources = [f"hf://datasets/owner/prompts-{number}/data/single-turn.jsonl" for number in range(count)]
    commit = "b" * 40
    return tuple(
        FetchedModel(source=one, revision="main", commit=commit, bytes=12_345, path=snapshot_path(one, commit))
        for one in sources
    )


def unlike(sent: FetchResult) -> FetchResult:
    """With a commit of each one's own, which no packing makes shorter."""

    def own(one: FetchedModel) -> FetchedModel:
        commit = hashlib.sha1(one.source.encode(), usedforsecurity=False).hexdigest()
        return replace(one, commit=commit, path=snapshot_path(one.source, commit))

    return replace(sent, models=tuple(map(own, sent.models)), datasets=tuple(map(own, sent.datasets)))


def test_datasets_come_back_beside_the_models() -> None:
    sent = replace(fetched(2), datasets=datasets(2))
    text = sent.to_message()
    assert FetchResult.from_message(text) == sent
    assert "snapshots" not in text  # a path follows from the commit


def test_as_many_datasets_as_a_spec_may_name_leave_room_for_a_pair_and_its_facts() -> None:
    sent = unlike(replace(fetched(2), datasets=datasets(16)))
    assert FetchResult.from_message(sent.to_message()) == sent


def test_more_datasets_than_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 models and 400 datasets"):
        replace(fetched(2), datasets=datasets(400)).to_message()


def test_facts_of_a_dozen_models_are_packed_and_none_is_lost() -> None:
    sent = unlike(fetched(12))
    text = sent.to_message()
    assert len(text.encode()) <= 12288 // 6, "what the kubelet keeps in a pod of six containers"
    assert '"packed":' in text
    assert FetchResult.from_message(text) == sent


def test_a_message_that_would_be_too_long_loses_facts_but_no_commit() -> None:
    sent = fetched(20)
    dice = random.Random(0)
    odd = {source: (dice.randbytes(100).hex(), dice.randbytes(50).hex()) for source in sent.facts}
    strange = {source: replace(facts, lacks=odd[source]) for source, facts in sent.facts.items()}
    text = replace(sent, facts=strange).to_message()
    assert len(text.encode()) <= 12288 // 6, "what the kubelet keeps in a pod of six containers"
    found = FetchResult.from_message(text)
    assert found.models == sent.models
    assert 0 < len(found.facts) < 20
    assert all(found.facts[source] == strange[source] for source in found.facts)


def test_more_commits_than_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="100 models"):
        unlike(fetched(100)).to_message()


def test_a_path_of_its_own_comes_back_too() -> None:
    (model,) = fetched(1).models
    sent = FetchResult(models=(replace(model, path="/elsewhere"),), facts={})
    assert FetchResult.from_message(sent.to_message()) == sent


def test_what_a_newer_release_adds_is_ignored() -> None:
    value = json.loads(fetched(1).to_message())
    value["models"][0]["license"] = "apache-2.0"
    value["facts"]["hf://owner/model-0"]["colour"] = "blue"
    assert FetchResult.from_message(json.dumps(value)) == fetched(1)


@pytest.mark.parametrize(
    "text",
    ["", "hf://a/b: gated; accept its terms", "[]", "3", '{"version":1,"models":[],"facts":{}}', '{"version":2}'],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the message of a finished fetch"):
        FetchResult.from_message(text)
