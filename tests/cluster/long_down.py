"""A change of the spec with which no server starts: in two minutes what served serves again, and Stalled says why."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import POOL, small
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import pool_of, served

SOON = 120
SMALL = {"spec": {"containers": [{"name": "server", "resources": {"limits": {"memory": "20Mi"}}}]}}


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    """One that serves its baseline."""
    with namespace_for("down") as fresh:
        fresh.apply(small("memory", hub))
        fresh.wait("memory to serve", served(fresh, "memory", "baseline"), 120)
        yield fresh


def test_a_memory_limit_that_is_too_small(here: Namespace) -> None:
    before = pool_of(here.get("specdep", "memory"))["serving"]
    edit(here, "memory", {"podTemplate": SMALL})
    deployment = here.wait("what served to serve again", back(here, "memory"), SOON)
    assert pool_of(deployment)["serving"]["revision"] == before["revision"]
    assert "OOMKilled" in message(deployment, "Stalled")
    assert says(deployment, "Measuring", "False", "BaselineHeld")

    here.kubectl("annotate", "specdep", "memory", f"retry.paceline.dev/{POOL}=now")
    here.wait("it to be tried again", lambda: "holds" not in pool_of(here.get("specdep", "memory")), 10)
    assert pool_of(here.get("specdep", "memory"))["internal"]["handled"] == {"retry": "now"}


def edit(here: Namespace, name: str, engine: Manifest) -> None:
    here.kubectl("patch", "specdep", name, "--type", "merge", "--patch", json.dumps({"spec": {"engine": engine}}))


def back(here: Namespace, name: str) -> Callable[[], Manifest | None]:
    """The deployment, once it serves and says that a person must act."""

    def look() -> Manifest | None:
        found = here.get("specdep", name)
        calm = says(found, "Ready", "True", "Serving") and not condition(found, "Reconciling")
        return found if calm and says(found, "Stalled", "True", "NotReady") else None

    return look


def message(deployment: Manifest, kind: str) -> str:
    return str((condition(deployment, kind) or {})["message"])
