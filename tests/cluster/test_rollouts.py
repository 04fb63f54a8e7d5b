"""Roll-outs of a pool of one server: no request is lost where one server more has room, and none for a wrong tag."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import POOL, pool_of, served

NAME = "coder"
ABSENT = "localhost/paceline-absent:0"
LABELS = f"paceline.dev/deployment={NAME},paceline.dev/component=server"
CLIENT = """
import json, os, threading, time, urllib.request
body = json.dumps({"model": "qwen3-coder-next", "max_tokens": 16, "messages": [{"role": "user", "content": "Hello"}]})
lock, asked, failed, last, gap = threading.Lock(), 0, [], time.monotonic(), 0.0
def ask():
    global asked, last, gap
    while True:
        request = urllib.request.Request(os.environ["URL"], body.encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                why = "" if len(json.load(answer)["choices"]) == 1 else "no answer"
        except Exception as problem:
            why = repr(problem)
        with lock:
            now, asked = time.monotonic(), asked + 1
            if why:
                failed.append(why)
            else:
                last, gap = now, max(gap, now - last)
            print(json.dumps({"asked": asked, "failed": len(failed), "gap": gap, "why": failed[:3]}), flush=True)
        time.sleep(0.05)
for _ in range(4):
    threading.Thread(target=ask).start()
"""
"""Four users, each of whom asks again once there is an answer. The last line of the log is what they have seen."""


@dataclass(frozen=True, slots=True)
class Seen:
    """By all users since they began. `gap` is the longest time without an answer, in seconds."""

    asked: int
    failed: int
    gap: float
    why: tuple[str, ...]


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    """One server, whose candidate has won; a person promotes it."""
    with namespace_for("rollouts") as fresh:
        fresh.apply(small(NAME, hub, promotion={"mode": "Manual"}))
        fresh.wait("a verdict", lambda: says(fresh.get("specdep", NAME), "Promoted", "False", "AwaitingPromote"), 150)
        fresh.apply(users(fresh))
        fresh.kubectl("wait", "--for=condition=Ready", "pod/users", "--timeout=30s")
        fresh.wait("an answer", lambda: seen(fresh), 30)
        yield fresh


def test_a_promotion_and_a_rollback_lose_no_request(here: Namespace) -> None:
    promote(here)
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    here.kubectl("annotate", "specdep", NAME, f"rollback.paceline.dev/{POOL}=back")
    here.wait("the baseline to be served again", served(here, NAME, "baseline"), 60)
    found = seen(here)
    assert found is not None
    assert (found.failed, found.why) == (0, ())
    assert found.asked > 50
    assert found.gap < 5
    print(found)


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
    assert "hold" not in pool_of(here.get("specdep", NAME))
    found = seen(here)
    assert found is not None
    assert found.failed == 0


def users(here: Namespace) -> Manifest:
    url = f"http://{NAME}-{POOL}.{here.name}.svc/v1/chat/completions"
    container = {"name": "users", "image": "localhost/paceline:dev", "command": ["python", "-c", CLIENT]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "users"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{**container, "env": [{"name": "URL", "value": url}]}],
        },
    }


def seen(here: Namespace) -> Seen | None:
    lines = here.kubectl("logs", "users", "--tail=1").splitlines()
    if not lines:
        return None
    last = json.loads(lines[-1])
    return Seen(asked=last["asked"], failed=last["failed"], gap=last["gap"], why=tuple(last["why"]))


def promote(here: Namespace) -> None:
    message = str((condition(here.get("specdep", NAME), "Promoted") or {})["message"])
    (word,) = [word for word in message.split() if word.startswith("promote.paceline.dev/")]
    here.kubectl("annotate", "specdep", NAME, word.rstrip(";,."))


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
