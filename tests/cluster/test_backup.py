"""A namespace is deleted and brought back from a backup that has no status: the same servers, and nothing is measured
again (0102)."""

from typing import Any

import yaml
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace, condition, listed
from tests.support.queries import name_of, pool_of, served

NAME = "coder"
KINDS = ("persistentvolumeclaims", "controllerrevisions", "benchround", "bench", "specdep")
"""In the order in which Velero would restore them: volumes, then by name."""


def test_a_restored_namespace_serves_the_same_and_measures_nothing(hub: str) -> None:
    """The volume is restored empty: the models are fetched again, at their commits."""
    with namespace_for("backup") as first:
        first.apply(small(NAME, hub))
        before = first.wait("the winner to be served", served(first, NAME, "wide"), 150)
        backup = [one for kind in KINDS for one in kept(first, kind)]
    rounds = [one for one in backup if one["kind"] == "BenchmarkRound"]
    assert len(rounds) == 2
    with namespace_for("restored") as again:
        for one in backup:
            again.kubectl("create", "-f", "-", feed=yaml.safe_dump(one))
        after = again.wait("the winner to be served", served(again, NAME, "wide"), 150)
        assert earned(after) == earned(before)
        assert [name_of(job) for job in again.list("jobs", "paceline.dev/component=round")] == []
        (run,) = again.list("bench")
        assert (condition(run, "Complete") or {})["reason"] == "Promote"
        owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in listed("benchround", "-n", again.name)]
        assert owners == [run["metadata"]["uid"]] * 2
        assert run["rounds"] == [one["spec"] for one in rounds]


def kept(here: Namespace, kind: str) -> list[Manifest]:
    """As Velero restores it: of the metadata name, labels and annotations, and no status."""
    return [
        {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata(one)} | unbound(one)
        for one in listed(kind, "--namespace", here.name)
    ]


def metadata(one: Manifest) -> dict[str, Any]:
    """Without the annotations by which a claim is bound, which Velero drops as well."""
    of = one["metadata"]
    annotations = {key: value for key, value in of.get("annotations", {}).items() if "kubernetes.io/" not in key}
    return {"name": of["name"], "labels": of.get("labels", {}), "annotations": annotations}


def unbound(one: Manifest) -> dict[str, Any]:
    """A claim without its volume, which is not in the backup."""
    if one["kind"] != "PersistentVolumeClaim":
        return {}
    return {"spec": {key: value for key, value in one["spec"].items() if key != "volumeName"}}


def earned(deployment: Manifest) -> dict[str, Any]:
    serving = pool_of(deployment)["serving"]
    return {key: serving[key] for key in ("arm", "revision", "evidence")}
