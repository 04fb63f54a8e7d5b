"""What was promoted stops paying: it is told, and the baseline serves instead."""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import POOL, pool_of, served

WINDOW = "10s"
SOON = 60
"""Seconds: two windows, and as much as a busy machine adds."""
PROMPT = json.loads(files("paceline.pods.datasets").joinpath("code.jsonl").read_text().splitlines()[0])
QUESTION = {"model": "qwen3-coder-next", "max_tokens": 24, "temperature": 0}
CURL = ("curl", "--silent", "--fail", "--max-time", "300")


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    """Two that serve their winners, side by side."""
    with namespace_for("guard") as fresh:
        fresh.apply(small("stale", hub, guard={"action": "Notify", "window": WINDOW}))
        fresh.apply(small("hangs", hub, guard={"action": "Fallback", "window": WINDOW}))
        for name in ("stale", "hangs"):
            fresh.wait(f"the winner of {name} to be served", served(fresh, name, "wide"), 180)
        yield fresh


def test_acceptance_drops_is_told_recovers_and_falls_back(here: Namespace) -> None:
    """The head goes stale while it serves; then it is as it was; then it is stale again, and the guard may act."""
    load(here, "stale")
    emulate(here, "stale", accepting=0.2)
    told = here.wait("it to be told", degraded(here, "stale", "AcceptanceDropped"), SOON)
    assert "expected" in (condition(told, "SpeculationDegraded") or {})["message"]
    assert pool_of(told)["serving"]["arm"] == "wide"

    emulate(here, "stale", accepting=1)
    here.wait(
        "it to pay again", lambda: None if condition(here.get("specdep", "stale"), "SpeculationDegraded") else 1, SOON
    )

    here.kubectl("patch", "specdep", "stale", "--type=merge", "--patch", '{"spec": {"guard": {"action": "Fallback"}}}')
    emulate(here, "stale", accepting=0.2)
    fallen = here.wait("the baseline to be served", served(here, "stale", "baseline"), 2 * SOON)
    assert says(fallen, "SpeculationDegraded", "True", "FellBack")
    assert (pool_of(fallen)["holds"][0]["reason"], pool_of(fallen)["holds"][0]["arm"]) == ("Fallback", "wide")
    assert pool_of(fallen)["history"][0]["reason"] == "Fallback"

    here.kubectl("annotate", "specdep", "stale", f"retry.paceline.dev/{POOL}=once-more")
    again = here.wait("a person to serve it again", served(here, "stale", "wide"), SOON)
    assert condition(again, "SpeculationDegraded") is None


def test_a_server_that_hangs_gives_way_to_the_baseline(here: Namespace) -> None:
    """The kubelet finds it ready all the while."""
    load(here, "hangs")
    emulate(here, "hangs", hung=True)
    fallen = here.wait("the fallback", degraded(here, "hangs", "FellBack"), SOON)
    assert "under way and no token" in pool_of(fallen)["holds"][0]["message"]
    assert pool_of(fallen)["internal"]["target"]["arm"] == "baseline"


def degraded(here: Namespace, name: str, reason: str) -> Callable[[], Manifest | None]:
    def look() -> Manifest | None:
        found = here.get("specdep", name)
        return found if says(found, "SpeculationDegraded", "True", reason) else None

    return look


def load(here: Namespace, name: str) -> None:
    """One client asks the server of this deployment, again and again, for as long as it lives."""
    question = {**QUESTION, "messages": [{"role": "user", "content": PROMPT["prompt"]}]}
    asks = f'(while {" ".join(CURL)} --output /dev/null --json "$0" localhost:30000/v1/chat/completions; do :; done)'
    inside(here, name, "sh", "-c", f"{asks} >/dev/null 2>&1 &", json.dumps(question))


def emulate(here: Namespace, name: str, **told: float) -> None:
    inside(here, name, *CURL, "--json", json.dumps(told), "localhost:30000/emulate")


def inside(here: Namespace, name: str, *command: str) -> str:
    servers = here.list("pods", f"paceline.dev/component=server,paceline.dev/deployment={name},paceline.dev/arm=wide")
    (server,) = (pod for pod in servers if "deletionTimestamp" not in pod["metadata"])
    return here.kubectl("exec", server["metadata"]["name"], "--", *command)
