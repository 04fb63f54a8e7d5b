"""What counts as a difference, without an API server. tests/conformance asks a real one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.kube import APPLIED, difference, needs_apply, stamped
from paceline.kube.difference import amount


@pytest.mark.parametrize(
    ("current", "desired", "where"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, None),
        ({"a": 1}, {"a": 2}, ".a"),
        ({}, {"a": {"b": 1}}, ".a"),
        ({}, {"a": {}, "b": [], "c": None}, None),
        ({"a": [1, 2]}, {"a": [2, 1]}, ".a[0]"),
        ({"a": [1, 2]}, {"a": [1]}, ".a"),
        ({"env": [{"name": "B"}, {"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1"}]}, None),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "2"}]}, ".env[A].value"),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A"}, {"name": "B"}]}, ".env[B]"),
        ({"limits": {"cpu": "500m"}}, {"limits": {"cpu": 0.5}}, None),
        ({"limits": {"gpu": "4"}}, {"limits": {"gpu": 4}}, None),
        ({"limits": {"memory": "4Gi"}}, {"limits": {"memory": "5Gi"}}, ".limits.memory"),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1000m"}]}, ".env[A].value"),
        ("a", {"a": 1}, ""),
    ],
)
def test_the_first_difference_is_named(current: Any, desired: Any, where: str | None):
    assert difference(current, desired) == where


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", 1), ("0.5", "500m"), ("1Gi", "1024Mi"), ("1G", "1000M"), ("1e3", "1k"), ("100n", "0.0000001")],
)
def test_quantities_have_many_notations(one: Any, other: Any):
    assert amount(one) == amount(other)


def test_what_is_no_quantity_is_itself():
    assert amount("4 GB") == "4 GB"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_nothing_differs_from_itself(value: Any):
    assert difference(value, value) is None


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_a_stamp_tells_manifests_apart_and_ignores_preconditions(spec: dict[str, Any]):
    manifest = {"metadata": {"name": "a"}, "spec": spec}
    with_uid = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "spec": spec}
    other = {"metadata": {"name": "a"}, "spec": spec | {"one more": 1}}
    stamps = [stamped(m)["metadata"]["annotations"][APPLIED] for m in (manifest, with_uid, other)]
    assert stamps[0] == stamps[1] != stamps[2]


def test_what_is_not_there_needs_an_apply():
    assert needs_apply(None, {})
