"""The store: what counts when a list, a watch and the answers to own writes arrive in any order."""

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from paceline.kube import Manifest, Store
from paceline.kube.resources import matches


def pod(name: str, version: int, uid: str = "u1", labels: dict[str, str] | None = None, owner: str = "") -> Manifest:
    metadata: dict[str, Any] = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    metadata["labels"] = labels or {}
    metadata["ownerReferences"] = [{"uid": owner}] if owner else []
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def filled(*pods: Manifest, version: int = 10) -> tuple[Store, list[tuple[str, str, str]]]:
    """A store after a list at `version`, and what it tells from then on."""
    told: list[tuple[str, str, str]] = []
    store = Store(
        lambda manifest: manifest,
        lambda kind, new, old: told.append((kind, new["metadata"]["name"], new["metadata"]["uid"])),
    )
    store.replace(pods, version)
    told.clear()
    return store, told


def test_an_object_missing_in_a_list_was_deleted():
    store, told = filled(pod("a", 1), pod("b", 2))
    store.replace([pod("b", 2)], 20)
    assert told == [("DELETED", "a", "u1")]
    assert store.get("ns", "a") is None


def test_an_object_made_again_is_deleted_and_added():
    store, told = filled(pod("a", 1, uid="old"))
    store.observe("MODIFIED", pod("a", 11, uid="new"))
    assert told == [("DELETED", "a", "old"), ("ADDED", "a", "new")]


def test_an_unchanged_object_is_not_told_again():
    store, told = filled(pod("a", 1))
    store.replace([pod("a", 1)], 20)
    store.observe("MODIFIED", pod("a", 1))
    assert told == []


def test_the_answer_to_an_own_write_is_seen_at_once_and_told_once():
    store, told = filled()
    store.saw(pod("a", 11))
    store.observe("ADDED", pod("a", 11))
    assert told == [("ADDED", "a", "u1")]


def test_an_old_event_does_not_undo_an_own_write():
    store, told = filled(pod("a", 5))
    store.saw(pod("a", 12, labels={"new": "yes"}))
    store.observe("MODIFIED", pod("a", 11))
    assert [p["metadata"]["labels"] for p in store.select("ns")] == [{"new": "yes"}]
    assert len(told) == 1


def test_a_list_that_was_on_its_way_does_not_delete_what_is_younger():
    store, told = filled(version=10)
    store.saw(pod("a", 12))
    store.replace([], 11)
    assert store.get("ns", "a") is not None
    assert told == [("ADDED", "a", "u1")]


def test_an_answer_that_comes_after_the_deletion_raises_no_ghost():
    store, told = filled(pod("a", 5))
    store.observe("DELETED", pod("a", 12))
    store.saw(pod("a", 11))
    assert store.get("ns", "a") is None
    assert told == [("DELETED", "a", "u1")]


def test_the_deletion_of_a_predecessor_does_not_touch_the_successor():
    store, told = filled(pod("a", 5, uid="old"))
    store.saw(pod("a", 13, uid="new"))
    store.observe("DELETED", pod("a", 12, uid="old"))
    assert told == [("DELETED", "a", "old"), ("ADDED", "a", "new")]
    assert len(store) == 1


def test_what_is_asked_for_by_label_is_found_without_a_look_at_the_rest(monkeypatch: pytest.MonkeyPatch):
    """Of 2,000 pods two are of this run: no other may be touched, or a pass would cost what all runs have."""
    store = Store(lambda manifest: manifest, lambda *_: None, indexed=["run"])
    store.replace([pod(f"p{n}", 1, labels={"run": f"r{n // 2}", "color": "red"}) for n in range(2000)], 10)
    looked_at: list[Mapping[str, str]] = []

    def matching(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
        looked_at.append(labels)
        return matches(labels, wanted)

    monkeypatch.setattr("paceline.kube.store.matches", matching)
    assert [p["metadata"]["name"] for p in store.select("ns", {"run": "r700", "color": "red"})] == ["p1400", "p1401"]
    assert [labels["run"] for labels in looked_at] == ["r700", "r700"]


def test_the_index_follows_an_object_that_changes_its_label_or_goes():
    store = Store(lambda manifest: manifest, lambda *_: None, indexed=["run"])
    names = lambda run: [p["metadata"]["name"] for p in store.select(None, {"run": run})]  # noqa: E731
    store.replace([pod("a", 1, labels={"run": "r1"}), pod("b", 1, labels={"run": "r1"}), pod("c", 1)], 10)
    assert (names("r1"), names("r2")) == (["a", "b"], [])
    store.observe("MODIFIED", pod("a", 11, labels={"run": "r2"}))
    assert (names("r1"), names("r2")) == (["b"], ["a"])
    store.observe("MODIFIED", pod("a", 12))
    store.observe("DELETED", pod("b", 13, labels={"run": "r1"}))
    assert (names("r1"), names("r2")) == ([], [])
    assert [p["metadata"]["name"] for p in store.select("ns")] == ["a", "c"]
    store.clear()
    assert store.select() == []


def test_a_packed_store_says_the_same_and_takes_a_fraction_of_the_memory():
    """500 Deployments as the API server gives them, of which one is asked for at a time."""
    text = json.dumps({"env": [{"name": f"V{n}", "value": f"value {n}"} for n in range(100)]})
    kept = []
    for packed in (False, True):
        store = Store(lambda manifest: manifest, lambda *_: None, packed=packed)
        tracemalloc.start()
        store.replace([pod(f"p{n}", 1) | {"spec": json.loads(text)} for n in range(500)], 10)
        kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert store.get("ns", "p7") == pod("p7", 1) | {"spec": json.loads(text)}
    assert kept[1] < kept[0] / 8


def test_select_by_namespace_labels_and_owner():
    red, blue = {"color": "red"}, {"color": "blue"}
    store, _ = filled(
        pod("b", 1, labels=red, owner="o1"), pod("a", 2, labels=red), pod("c", 3, labels=blue, owner="o1")
    )
    assert [p["metadata"]["name"] for p in store.select("ns", red)] == ["a", "b"]
    assert [p["metadata"]["name"] for p in store.select(owner="o1")] == ["b", "c"]
    assert store.select("elsewhere") == []
