"""A deployment as GitOps has it: applied server-side by its own manager, waited for by kubectl, scaled by an
autoscaler of Kubernetes. There is no metrics API here, and none is needed: whatever its metrics say, an autoscaler
brings the number up to its minimum and down to its maximum."""

import json

import yaml
from tests.cluster.example import pool, small
from tests.support.kubernetes import Manifest, Namespace, run, says
from tests.support.queries import pool_of, served

NAME = "coder"
SERVERS = f"{NAME}-latency"
MANAGER = "--field-manager=gitops"


def autoscaler(least: int, most: int) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": SERVERS}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "by-queue"},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most},
    }


def left_to_an_autoscaler(hub: str) -> Manifest:
    unsized = pool()
    del unsized["replicas"]
    return small(NAME, hub, pools=[unsized])


def synced(here: Namespace, manifest: Manifest) -> None:
    here.kubectl("apply", "--server-side", MANAGER, "-f", "-", feed=yaml.safe_dump(manifest))


def difference(here: Namespace, manifest: Manifest) -> str:
    """What `kubectl diff` finds between Git and the cluster."""
    arguments = ("--namespace", here.name, "diff", "--server-side", MANAGER, "-f", "-")
    found = run(*arguments, feed=yaml.safe_dump(manifest))
    assert found.returncode in (0, 1), found.stderr
    return found.stdout


def writers_of_spec(here: Namespace, kind: str, name: str, field: str = "f:spec") -> set[str]:
    found = json.loads(here.kubectl("get", kind, name, "--show-managed-fields", "-o", "json"))
    return {
        entry["manager"]
        for entry in found["metadata"]["managedFields"]
        if (field == "f:spec" and field in entry["fieldsV1"]) or field in entry["fieldsV1"].get("f:spec", {})
    }


def replicas(here: Namespace) -> int:
    return int(here.get("deployment", SERVERS)["spec"]["replicas"])


def test_git_owns_the_spec_and_an_autoscaler_the_number_of_servers(here: Namespace, hub: str) -> None:
    in_git = left_to_an_autoscaler(hub)
    synced(here, in_git)
    synced(here, autoscaler(2, 4))
    here.kubectl("wait", f"specdep/{NAME}", "--for=condition=Ready", "--timeout=120s")
    here.wait("the autoscaler to have its minimum", lambda: replicas(here) == 2, 60)
    assert difference(here, in_git) == ""

    here.kubectl("wait", f"specdep/{NAME}", "--for=condition=Decided", "--timeout=150s")
    here.kubectl("wait", f"specdep/{NAME}", "--for=condition=Promoted", "--timeout=60s")
    found = here.wait("both to be replaced", served(here, NAME, "wide"), 60)
    assert (replicas(here), pool_of(found)["readyReplicas"]) == (2, 2)
    assert difference(here, in_git) == ""
    assert writers_of_spec(here, "specdep", NAME) == {"gitops"}

    # Git gets a number, too: whoever reviews it is told, and no server goes.
    synced(here, small(NAME, hub))
    here.wait("it to be told", lambda: says(here.get("specdep", NAME), "Ready", "True", "ReplicasIgnored"), 30)
    assert replicas(here) == 2
    synced(here, autoscaler(1, 1))
    here.wait("the autoscaler to have its maximum", lambda: replicas(here) == 1, 60)
    assert "paceline" not in writers_of_spec(here, "deployment", SERVERS, "f:replicas")

    here.kubectl("delete", "hpa", "by-queue")
    synced(here, small(NAME, hub, pools=[pool(replicas=2)]))
    here.wait("the number of Git", lambda: replicas(here) == 2, 30)
    assert "paceline" in writers_of_spec(here, "deployment", SERVERS, "f:replicas")
