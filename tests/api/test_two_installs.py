"""Two operators never work in one namespace: helm asks the cluster who does already."""

from collections.abc import Iterator

import pytest
from tests.api.chart import HOME, installed, of_kind, rendered
from tests.support.apiserver import Running


@pytest.fixture
def taken(apiserver: Running) -> Iterator[Running]:
    """A release `paceline` in paceline-system that works in a and b, as far as the next one can see it."""
    (role,) = [one for one in of_kind(rendered(namespaces=["a", "b"]), "ClusterRole") if _is_main(one)]
    role["metadata"]["name"] = "paceline-of-another"
    role["metadata"]["annotations"] |= {
        "meta.helm.sh/release-name": "paceline",
        "meta.helm.sh/release-namespace": "paceline-system",
    }
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=role)
    for namespace in ("b", "c"):
        apiserver.kubectl("create", "namespace", namespace, check=False)
    yield apiserver
    apiserver.kubectl("delete", "clusterrole", "paceline-of-another")


def _is_main(role: dict[str, dict[str, str]]) -> bool:
    return role["metadata"]["name"] == f"{HOME}-paceline"


@pytest.mark.parametrize(
    ("namespace", "namespaces", "says"),
    [
        ("two", ["c"], ""),
        ("two", ["b", "c"], "works in namespace b already"),
        ("two", [], "works in a, b, and this one would in all namespaces"),
        ("paceline-system", ["c"], "the Lease there is of one operator"),
    ],
    ids=["disjoint", "one in both", "everywhere", "one Lease"],
)
def test_a_second_release_is_refused_where_the_first_works(
    taken: Running, namespace: str, namespaces: list[str], says: str
) -> None:
    told = installed(taken, "second", namespace, namespaces=namespaces)
    assert says in told
    assert bool(says) == bool(told), told


def test_where_nobody_works_nothing_is_refused(apiserver: Running) -> None:
    assert installed(apiserver, "second", "two") == ""
