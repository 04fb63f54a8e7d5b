"""What the operator may, and what it asks for: the API server's audit log against the chart's role. Last of its
directory, so that everything has been asked for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.example import pool, small
from tests.support.kubernetes import OPERATOR, STATE, Namespace, listed, only_on_the_own

Right = tuple[str, str]
"""A verb, and the kind with its group: `("patch", "jobs.batch")`."""
AUDIT = STATE / "audit.log"
UNUSED = {
    "httproutes.gateway.networking.k8s.io": "no story of `make test` installs a gateway (tests/fault/test_routes.py)",
    "inferencepools.inference.networking.k8s.io": "as above",
    "resourceclaimtemplates.resource.k8s.io": "no story of `make test` claims devices (long_dra.py)",
    "leaderworkersets.leaderworkerset.x-k8s.io": "no story of `make test` has servers of several nodes",
}
"""Kind that this cluster does not have, or no story needs → what stands in for it."""
RARE = {
    ("list", "events"): "where a quota refuses pods, which nothing else tells (long_quota.py)",
    ("get", "jobs.batch"): "where a list lags behind what was seen (tests/fault/test_watches.py)",
}
"""Rights that no story of `make test` needs → when they are needed."""


def granted() -> frozenset[Right]:
    roles = [*listed("clusterroles", "--field-selector", "metadata.name=paceline")]
    roles += listed("roles", "--namespace", OPERATOR, "--field-selector", "metadata.name=paceline")
    return frozenset(
        (verb, ".".join(filter(None, (kind, group))))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    )


def events() -> Iterator[dict[str, Any]]:
    with AUDIT.open() as lines:
        for line in lines:
            event: dict[str, Any] = json.loads(line)
            if event.get("objectRef"):
                yield event


def right(event: dict[str, Any]) -> Right:
    of = event["objectRef"]
    kind = "/".join(filter(None, (of["resource"], of.get("subresource", ""))))
    return event["verb"], ".".join(filter(None, (kind, of.get("apiGroup", ""))))


def created() -> set[str]:
    """Kinds of objects that an apply has made: for that the API server wants `create`, and logs `patch`."""
    made = 201
    return {right(event)[1] for event in events() if event.get("responseStatus", {}).get("code") == made}


@pytest.mark.timeout(300)
def test_a_pool_that_is_dropped_takes_all_that_was_its_own_along(here: Namespace, hub: str) -> None:
    """Its prompts are in no ConfigMap, so nothing is measured meanwhile."""
    benchmark = {"datasets": [{"name": "code", "source": "configMap://absent/code.jsonl"}]}
    two = [pool(replicas=1) | {"name": name} for name in ("kept", "dropped")]
    here.apply(small("pools", hub, pools=two, benchmark=benchmark))
    here.wait("both to be served", lambda: owned(here, "dropped") == OWN and owned(here, "kept") == OWN, 120)
    here.apply(small("pools", hub, pools=two[:1], benchmark=benchmark))
    here.wait("what was the dropped pool's to go", lambda: owned(here, "dropped") == frozenset(), 120)
    assert owned(here, "kept") == OWN


OWN = frozenset(("deployments", "services", "networkpolicies", "poddisruptionbudgets", "controllerrevisions"))


def owned(here: Namespace, pool: str) -> frozenset[str]:
    """Kinds of which there is an object of this pool."""
    of_pool = f"paceline.dev/pool={pool},app.kubernetes.io/managed-by=paceline"
    return frozenset(kind for kind in OWN if here.list(kind, of_pool))


@only_on_the_own
def test_every_right_of_the_operator_is_used() -> None:
    """A verb that nobody needs is a verb that a stolen token has."""
    used = {right(event) for event in events()} | {("create", kind) for kind in created()}
    spare = {(verb, kind) for verb, kind in granted() - used - RARE.keys() if kind not in UNUSED}
    assert sorted(spare) == []


@only_on_the_own
def test_nothing_is_refused_to_the_operator() -> None:
    decision = "authorization.k8s.io/decision"
    forbidden = {right(event) for event in events() if event.get("annotations", {}).get(decision) == "forbid"}
    assert sorted(forbidden) == []
