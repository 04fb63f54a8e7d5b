"""What a story asks the cluster again and again; None while it is not so."""

import base64
import gzip
import json
from collections.abc import Callable

from tests.support.kubernetes import Manifest, Namespace, condition, labels_of, says

RUN = "paceline.dev/run"
POOL = "latency"
"""The only pool of a story."""

QUOTA: Manifest = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "one-job"},
    "spec": {"hard": {"count/jobs.batch": "1"}},
}
"""Room for the prefetch and for no round: a run can be made, its Job cannot."""


def pool_of(deployment: Manifest) -> Manifest:
    """The status of its only pool."""
    pools: list[Manifest] = deployment.get("status", {}).get("pools", [])
    return pools[0] if pools else {}


def served(here: Namespace, name: str, arm: str) -> Callable[[], Manifest | None]:
    """The deployment, once it serves this arm and nothing is being changed."""

    def look() -> Manifest | None:
        found = here.get("specdep", name)
        calm = says(found, "Ready", "True", "Serving") and not condition(found, "Reconciling")
        return found if calm and pool_of(found).get("serving", {}).get("arm") == arm else None

    return look


def stalled(here: Namespace, name: str) -> Callable[[], Manifest | None]:
    """The deployment, once a person must act."""

    def look() -> Manifest | None:
        found = here.get("specdep", name)
        return found if condition(found, "Stalled") else None

    return look


def run_of(here: Namespace, name: str) -> Callable[[], Manifest | None]:
    """Its first run, by age."""
    labels = f"paceline.dev/deployment={name},paceline.dev/pool={POOL}"
    return lambda: min(here.list("bench", labels), key=lambda run: run["metadata"]["creationTimestamp"], default=None)


def finished(here: Namespace, run: Manifest) -> Callable[[], Manifest | None]:
    """The run, once it has a verdict."""

    def look() -> Manifest | None:
        found = here.get("bench", run["metadata"]["name"])
        return found if "verdict" in found.get("status", {}) else None

    return look


def measuring(here: Namespace, run: Manifest, number: int) -> Callable[[], Manifest | None]:
    """The pod of that round (counted from 0), once its first server is ready and so a point is being measured."""

    def look() -> Manifest | None:
        for pod in here.list("pods", f"{RUN}={run['metadata']['name']}"):
            of_round = labels_of(pod)["batch.kubernetes.io/job-name"].split("-")[-2] == str(number)
            if of_round and "ready after" in here.logs(pod["metadata"]["name"], "client"):
                return pod
        return None

    return look


def name_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def uid_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["uid"])


def jobs_of(here: Namespace, run: Manifest) -> list[Manifest]:
    """By name, which is in the order of rounds and tries."""
    return here.list("jobs", f"{RUN}={name_of(run)}")


def pods_of(here: Namespace, run: Manifest) -> list[Manifest]:
    return here.list("pods", f"{RUN}={name_of(run)}")


def complete(job: Manifest) -> bool:
    return any(c["type"] == "Complete" and c["status"] == "True" for c in job["status"].get("conditions", ()))


def lines_of(here: Namespace, measured: Manifest) -> list[Manifest]:
    """The full lines of a round, from the cache's claim, which every server has mounted."""
    pods = here.list("pods", "paceline.dev/component=server")
    pod = next(name_of(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"])
    encoded = here.kubectl("exec", pod, "--", "base64", measured["raw"]["path"])
    return lines_in(base64.b64decode(encoded))


def lines_in(packed: bytes) -> list[Manifest]:
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]
