"""A change of the spec with which no server starts: in two minutes what served serves again, and Stalled says why."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import POOL, small
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import pool_of, served

SOON = 120
ABSENT = "localhost/paceline-absent:0"
SMALL = {"spec": {"containers": [{"name": "server", "resources": {"limits": {"memory": "20Mi"}}}]}}


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    """Two that serve their baselines, side by side."""
    with namespace_for("down") as fresh:
        for name in ("tag", "memory"):
            fresh.apply(small(name, hub))
        for name in ("tag", "memory"):
            fresh.wait(f"{name} to serve", served(fresh, name, "baseline"), 120)
        yield fresh


def test_a_wrong_tag(here: Namespace) -> None:
    before = pool_of(here.get("specdep", "tag"))["serving"]
    edit(here, "tag", {"image": ABSENT})
    deployment = here.wait("what served to serve again", back(here, "tag"), SOON)
    assert pool_of(deployment)["serving"]["revision"] == before["revision"]
    assert ABSENT in message(deployment, "Stalled")
    assert says(deployment, "Measuring", "False", "BaselineHeld")

    here.kubectl("annotate", "specdep", "tag", f"retry.paceline.dev/{POOL}=now")
    here.wait("it to be tried again", lambda: pool_of(here.get("specdep", "tag")).get("hold") is None, 10)
    assert pool_of(here.get("specdep", "tag"))["handled"] == {"retry": "now"}


def test_a_memory_limit_that_is_too_small(here: Namespace) -> None:
    before = pool_of(here.get("specdep", "memory"))["serving"]
    edit(here, "memory", {"podTemplate": SMALL})
    deployment = here.wait("what served to serve again", back(here, "memory"), SOON)
    assert pool_of(deployment)["serving"]["revision"] == before["revision"]
    assert "OOMKilled" in message(deployment, "Stalled")


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
