"""Servers that are replaced in place, because there is no room for one more or nobody wants one. It takes minutes:
`make test-all`."""

import json

from tests.cluster.example import pool, small
from tests.cluster.load import seen_during, users
from tests.cluster.test_capacity import PRODUCT, filler, free_gpus
from tests.cluster.test_rollouts import GRACE, LABELS, NAME, standing
from tests.support.kubernetes import Manifest, Namespace, condition, listed
from tests.support.queries import pool_of, served


def test_without_room_it_is_replaced_in_place_after_a_minute(here: Namespace, hub: str) -> None:
    here.apply(small(NAME, hub, suspend=True))  # to be served, not measured
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    nodes = sorted(node["metadata"]["name"] for node in listed("nodes", "--selector", PRODUCT))
    for pod in [filler(node, free) for node in nodes if (free := free_gpus(node))]:
        here.apply(pod)
    change(here)
    here.wait("one server more to wait", lambda: "Insufficient" in progress(here), 30)
    assert len([pod for pod in standing(here) if ready(pod)]) == 1
    here.wait("it to be withdrawn", lambda: target(here).get("surge") == "Withdrawn", 75)
    here.wait("what was asked for", lambda: target(here)["revision"] == serving(here) and len(standing(here)) == 1, 60)


def test_of_two_servers_that_are_replaced_in_place_one_answers(here: Namespace, hub: str) -> None:
    engine = {"podTemplate": GRACE}
    here.apply(small(NAME, hub, suspend=True, engine=engine, promotion={"surge": "Never"}, pools=[pool(replicas=2)]))
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    users(here)
    before = serving(here)

    def roll_out() -> None:
        change(here)
        here.wait("what was asked for", lambda: before != serving(here) == target(here)["revision"], 60)
        here.wait("the others to have ended", lambda: len(here.list("pods", LABELS)) == 2, 30)

    found = seen_during(here, NAME, 45, roll_out)
    print(f"two servers in place: {found}")
    assert (found.failed, found.errors) == (0, ())
    assert found.longest < 5


def change(here: Namespace) -> None:
    """Other servers are asked for."""
    changed = {"suspend": False, "engine": {"args": ["--attention-backend=triton", "--mem-fraction-static=0.8"]}}
    here.kubectl("patch", "specdep", NAME, "--type", "merge", "--patch", json.dumps({"spec": changed}))


def progress(here: Namespace, name: str = NAME) -> str:
    return str((condition(here.get("specdep", name), "Reconciling") or {}).get("message", ""))


def target(here: Namespace, name: str = NAME) -> Manifest:
    found: Manifest = pool_of(here.get("specdep", name)).get("internal", {}).get("target", {})
    return found


def serving(here: Namespace) -> str:
    return str(pool_of(here.get("specdep", NAME)).get("serving", {}).get("revision", ""))


def ready(pod: Manifest) -> bool:
    return (condition(pod, "Ready") or {}).get("status") == "True"
