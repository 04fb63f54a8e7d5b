"""The chart with `namespaces`: rights in these and nowhere else, and an operator that asks for no others."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.chart import HOME, of_kind, rendered
from tests.api.operating import an_operator
from tests.api.test_namespaces import within
from tests.support.apiserver import Running, start
from tests.support.edits import example

ROOT = Path(__file__).parents[2]
OURS, THEIRS = "a", "b"
ACCOUNT = f"system:serviceaccount:{HOME}:paceline"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
SECONDS = 120
LOOKS = 8
"""Seconds in which an operator that looked beyond its namespaces would have done so."""


def roles(**values: Any) -> list[dict[str, Any]]:
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    return of_kind(rendered(**values), *kinds)


def granting(objects: list[dict[str, Any]], kind: str) -> dict[str, list[dict[str, Any]]]:
    """Roles that are bound to the operator → their rules."""
    bindings = [one for one in objects if one["kind"] == f"{kind}Binding"]
    bound = {(one["metadata"].get("namespace", ""), one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings}
    found = [one for one in objects if one["kind"] == kind]
    key = {(one["metadata"].get("namespace", ""), kind, one["metadata"]["name"]): one["rules"] for one in found}
    return {f"{namespace}/{name}": key[namespace, of, name] for namespace, of, name in bound}


def test_with_namespaces_no_right_is_the_clusters() -> None:
    everywhere, confined = roles(), roles(namespaces=[OURS, "c"])
    assert granting(confined, "ClusterRole") == {}
    (whole,) = granting(everywhere, "ClusterRole").values()
    found = granting(confined, "Role")
    assert found.pop(f"{HOME}/paceline") == granting(everywhere, "Role")[f"{HOME}/paceline"], "the Lease"
    assert found == {f"{OURS}/paceline-work": whole, "c/paceline-work": whole}
    (main,) = [one for one in of_kind(confined, "ClusterRole") if one["metadata"]["name"] == f"{HOME}-paceline"]
    assert main["rules"] == [], "it is there for another release to see who works where"


def test_its_own_namespace_may_be_one_of_them() -> None:
    names = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in roles(namespaces=[HOME])
    ]
    assert len(names) == len(set(names))


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    log = ("--audit-log-path", str(tmp_path / "audit.log"), "--audit-policy-file", str(tmp_path / "policy.json"))
    running = start(
        tmp_path / "server", options=[f"{one}={value}" for one, value in zip(log[::2], log[1::2], strict=True)]
    )
    try:
        running.install(ROOT / "crds")
        for name in (OURS, THEIRS, HOME):
            running.kubectl("create", "namespace", name)
        account = of_kind(rendered(), "ServiceAccount")
        given = {"apiVersion": "v1", "kind": "List", "items": [*account, *roles(namespaces=[OURS])]}
        running.kubectl("apply", "--server-side", "-f", "-", given=given)
        yield running
    finally:
        running.stop()


def test_an_operator_with_these_rights_works_there_sees_nothing_else_and_is_refused_nothing(
    audited: Running, tmp_path: Path
) -> None:
    manifest = example("ngram-no-draft")
    for namespace in (OURS, THEIRS):
        manifest["metadata"] = {"name": "served", "namespace": namespace}
        audited.kubectl("create", "-f", "-", given=manifest)
        audited.kubectl("create", "secret", "generic", "keys", "--from-literal=api=x", "-n", namespace)
    token = audited.kubectl("create", "token", "paceline", "-n", HOME).stdout.strip()
    config = json.loads(audited.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    log = tmp_path / "log"
    with an_operator(kubeconfig, log, PACELINE_NAMESPACES=OURS, POD_NAMESPACE=HOME) as operator:
        works = lambda: bool(audited.kubectl("get", "jobs", "-n", OURS, "-o", "name").stdout)  # noqa: E731
        assert within(SECONDS, works), log.read_text()[-3000:]
        time.sleep(LOOKS)
        assert operator.poll() is None
    assert audited.kubectl("get", "jobs,claims,events", "-n", THEIRS, "-o", "name", check=False).stdout == ""
    events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    asked = [event["objectRef"] | {"verb": event["verb"]} for event in events if "objectRef" in event]
    assert {one.get("namespace", "") for one in asked} - {OURS, HOME} == set(), asked
    assert [one for one in asked if one["resource"] == "secrets"] == []
    decision = "authorization.k8s.io/decision"
    assert [event for event in events if event.get("annotations", {}).get(decision) == "forbid"] == []
    assert any(one["verb"] == "patch" and one.get("subresource") == "status" for one in asked)
