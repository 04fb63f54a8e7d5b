"""Roll-outs of a pool of one server: no request is lost where one server more has room, and none for a wrong tag."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.cluster.images import MOVING, move_tag
from tests.cluster.load import seen_during, users
from tests.cluster.test_guard import emulate
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import POOL, name_of, pool_of, run_of, served
from tests.support.runs import made_by

from paceline.plan.objects import image_digest

NAME = "coder"
ABSENT = "localhost/paceline-absent:0"
LABELS = f"paceline.dev/deployment={NAME},paceline.dev/component=server"
GRACE = {"spec": {"terminationGracePeriodSeconds": 20}}
"""A server that waited for its users to leave would be killed within every story."""


@pytest.fixture(scope="module")
def here(hub: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """One server, whose candidate has won; a person promotes it."""
    with namespace_for("rollouts") as fresh:
        guard = {"action": "Fallback", "window": "10s"}
        engine = {"image": MOVING, "podTemplate": GRACE}
        move_tag("here", tmp_path_factory.mktemp("images"))
        fresh.apply(small(NAME, hub, promotion={"mode": "Manual", "changes": "Immediate"}, guard=guard, engine=engine))
        fresh.wait("a verdict", lambda: says(fresh.get("specdep", NAME), "Promoted", "False", "AwaitingPromote"), 150)
        users(fresh)
        yield fresh


def test_a_promotion_loses_no_request(here: Namespace) -> None:
    lost_none(here, "promotion", lambda: promote(here, "once"), "wide")


def test_a_rollback_loses_no_request(here: Namespace) -> None:
    rollback = f"rollback.paceline.dev/{POOL}=back"
    lost_none(here, "rollback", lambda: here.kubectl("annotate", "specdep", NAME, rollback), "baseline")


def test_a_wrong_tag_takes_nothing_down(here: Namespace) -> None:
    """Until somebody corrects it; then all is as it was."""
    before = {pod["metadata"]["uid"] for pod in standing(here)}
    image = here.get("specdep", NAME)["spec"]["engine"]["image"]
    patch(here, image=ABSENT)
    deployment = here.wait("it to be told", stalled(here, "ImageNotPulled"), 90)
    message = str((condition(deployment, "Stalled") or {})["message"])
    assert ABSENT in message
    assert "spec.engine.image" in message
    assert says(deployment, "Ready", "True", "Serving")
    patch(here, image=image)
    here.wait("it to be forgotten", lambda: not condition(here.get("specdep", NAME), "Stalled"), 20)
    here.wait("its Job to go", lambda: not here.list("jobs", "paceline.dev/component=pull"), 20)
    assert {pod["metadata"]["uid"] for pod in standing(here)} == before
    assert "holds" not in pool_of(here.get("specdep", NAME))


def test_a_fallback_loses_no_request(here: Namespace) -> None:
    """The head goes stale while it serves."""
    promote(here, "again")
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    here.wait("the others to have ended", lambda: alone(here), 30)
    lost_none(here, "fallback", lambda: emulate(here, NAME, accepting=0.2), "baseline", seconds=40)
    assert says(here.get("specdep", NAME), "SpeculationDegraded", "True", "FellBack")


def test_a_moved_tag_makes_the_evidence_stale(here: Namespace, tmp_path: Path) -> None:
    """A server that is replaced runs what the tag is now: that is said, and measured."""
    (before,) = standing(here)
    first = here.wait("the run", run_of(here, NAME), 1)
    move_tag("there", tmp_path)
    here.kubectl("delete", "pod", name_of(before))
    told = here.wait("it to be told", lambda: undecided(here), 60)
    (after,) = standing(here)
    was, now = (image_digest(pod["status"]["containerStatuses"][0]["imageID"]) for pod in (before, after))
    assert was != now
    assert f"{MOVING} was {was[:19]} in {name_of(first)}, but its servers run {now[:19]}" in told
    decided = here.wait(
        "another verdict", lambda: says(here.get("specdep", NAME), "Decided", "True", "AllDecided"), 120
    )
    assert decided
    (again,) = (run for run in here.list("bench") if name_of(run) != name_of(first))
    assert made_by(again) == {"attempt": "2", "trigger": "Stale", "token": now}
    assert image_digest(again["status"]["internal"]["imageDigests"]["server"]) == now


def undecided(here: Namespace) -> str:
    """Why the verdict does not hold; "" while it does."""
    found = condition(here.get("specdep", NAME), "Decided") or {}
    return str(found["message"]) if found.get("status") == "False" else ""


def lost_none(here: Namespace, what: str, asked: Callable[[], object], arm: str, seconds: int = 25) -> None:
    """While users ask, this arm begins to serve, and what served before ends."""

    def roll_out() -> None:
        asked()
        here.wait(f"{arm} to be served", served(here, NAME, arm), 60)
        here.wait("the others to have ended", lambda: alone(here), 30)

    found = seen_during(here, NAME, seconds, roll_out)
    print(f"{what}: {found}")
    assert (found.failed, found.errors) == (0, ())
    assert found.longest < 5


def alone(here: Namespace) -> bool:
    return len(here.list("pods", LABELS)) == 1


def promote(here: Namespace, token: str, name: str = NAME) -> None:
    said = str((condition(here.get("specdep", name), "Promoted") or {})["message"])
    assert f"promote.paceline.dev/{POOL}=" in said
    here.kubectl("annotate", "--overwrite", "specdep", name, f"promote.paceline.dev/{POOL}=@{token}")


def patch(here: Namespace, **engine: object) -> None:
    here.kubectl("patch", "specdep", NAME, "--type", "merge", "--patch", json.dumps({"spec": {"engine": engine}}))


def stalled(here: Namespace, reason: str) -> Callable[[], Manifest | None]:
    def look() -> Manifest | None:
        found = here.get("specdep", NAME)
        return found if says(found, "Stalled", "True", reason) else None

    return look


def standing(here: Namespace) -> list[Manifest]:
    """The servers but for those on their way out."""
    return [pod for pod in here.list("pods", LABELS) if "deletionTimestamp" not in pod["metadata"]]
