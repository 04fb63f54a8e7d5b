"""What the operator may, and what it asks for: the API server's audit log against the chart's role. Last of its
directory, so that everything has been asked for."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.kubernetes import OPERATOR, listed

Right = tuple[str, str]
"""A verb, and the kind with its group: `("patch", "jobs.batch")`."""
AUDIT = Path(os.environ.get("PACELINE_STATE", "/var/tmp/paceline-cluster")) / "audit.log"
UNUSED = {
    "httproutes.gateway.networking.k8s.io": "no story of `make test` installs a gateway (tests/fault/test_routes.py)",
    "inferencepools.inference.networking.k8s.io": "as above",
    "leaderworkersets.leaderworkerset.x-k8s.io": "no story of `make test` has servers of several nodes",
}
"""Kind that this cluster does not have → what stands in for it."""


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


def test_every_right_of_the_operator_is_used() -> None:
    """A verb that nobody needs is a verb that a stolen token has."""
    used = {right(event) for event in events()} | {("create", kind) for kind in created()}
    spare = {(verb, kind) for verb, kind in granted() - used if kind not in UNUSED}
    assert sorted(spare) == []


def test_nothing_is_refused_to_the_operator() -> None:
    decision = "authorization.k8s.io/decision"
    forbidden = {right(event) for event in events() if event.get("annotations", {}).get(decision) == "forbid"}
    assert sorted(forbidden) == []
