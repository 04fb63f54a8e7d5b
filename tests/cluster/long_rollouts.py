"""Without room for one server more, servers are replaced in place. It waits for a minute: `make test-all`."""

import json

from tests.cluster.example import small
from tests.cluster.test_capacity import PRODUCT, filler, free_gpus
from tests.cluster.test_rollouts import NAME, standing
from tests.support.kubernetes import Manifest, Namespace, condition, listed
from tests.support.queries import pool_of, served


def test_without_room_it_is_replaced_in_place_after_a_minute(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub, suspend=True))  # to be served, not measured
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    nodes = sorted(node["metadata"]["name"] for node in listed("nodes", "--selector", PRODUCT))
    for pod in [filler(node, free) for node in nodes if (free := free_gpus(node))]:
        here.apply(pod)
    changed = {"suspend": False, "engine": {"args": ["--attention-backend=triton", "--mem-fraction-static=0.8"]}}
    here.kubectl("patch", "specdep", NAME, "--type", "merge", "--patch", json.dumps({"spec": changed}))
    here.wait("one server more to wait", lambda: "Insufficient" in progress(here), 30)
    assert len([pod for pod in standing(here) if ready(pod)]) == 1
    here.wait("it to be withdrawn", lambda: target(here).get("surge") == "Withdrawn", 75)
    here.wait("what was asked for", lambda: target(here)["revision"] == serving(here) and len(standing(here)) == 1, 60)


def progress(here: Namespace, name: str = NAME) -> str:
    return str((condition(here.get("specdep", name), "Reconciling") or {}).get("message", ""))


def target(here: Namespace, name: str = NAME) -> Manifest:
    found: Manifest = pool_of(here.get("specdep", name)).get("target", {})
    return found


def serving(here: Namespace) -> str:
    return str(pool_of(here.get("specdep", NAME)).get("serving", {}).get("revision", ""))


def ready(pod: Manifest) -> bool:
    return (condition(pod, "Ready") or {}).get("status") == "True"
