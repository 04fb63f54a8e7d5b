"""A static chain and a schedule of depths on SGLang: the pool comes to a verdict and serves the schedule, whose file is
the same in the rounds' pods, in what the cluster keeps of the revision, and in the served pod."""

import json

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace
from tests.support.queries import POOL, jobs_of, pool_of, served

NAME = "scheduled"
CONFIG = "--speculative-adaptive-config"
WHOLE_SECONDS = 420
"""From apply to the schedule being served, on two cores: six servers, two of them under sixteen requests at a time."""


@pytest.mark.timeout(600)
def test_a_schedule_that_is_faster_than_a_chain_is_served(here: Namespace, hub: str) -> None:
    """By the published speeds a chain of 5 steps is 1.27x alone and 1.06x among sixteen, one of 2 steps 1.45x and
    1.30x. The schedule takes the chain's depth alone and the other among many."""
    candidates = [
        {"name": "chain", "tree": {"numSteps": 5, "topK": 1, "numDraftTokens": 6}},
        {"name": "falls", "schedule": [{"fromBatchSize": 1, "numSteps": 5}, {"fromBatchSize": 8, "numSteps": 2}]},
    ]
    benchmark = {"datasets": [{"name": "code", "source": "builtin://code", "maxTokens": 24}], "decideAfterRounds": [2]}
    pool = {"name": POOL, "replicas": 1, "concurrency": [1, 16], "candidates": candidates}
    here.apply(small(NAME, hub, pools=[pool], benchmark=benchmark))
    here.wait("the schedule to be served", served(here, NAME, "falls"), WHOLE_SECONDS)

    verdict = pool_of(here.get("specdep", NAME))["verdict"]
    run = here.get("bench", verdict["benchmarkRun"])
    assert (run["status"]["verdict"]["outcome"], run["status"]["verdict"]["winner"]) == ("Promote", "falls")
    for entry in run["status"]["rounds"]:
        points = {(point["arm"], point["workload"]): point for point in entry["points"]}
        assert all(point["valid"] for point in points.values()), entry
        alone, among = (float(points["falls", f"code@{size}"]["draftTokens"]) for size in (1, 16))
        assert (alone, among) == (5, pytest.approx(2, abs=1))  # its load begins and ends with fewer than eight

    (pod,) = here.list("pods", "paceline.dev/component=server,paceline.dev/arm=falls")
    command = pod["spec"]["containers"][0]["command"]
    path = command[command.index(CONFIG) + 1]
    text = here.kubectl("exec", pod["metadata"]["name"], "-c", "server", "--", "cat", path)
    assert json.loads(text) == {"1": {"candidate_steps": [5]}, "8": {"candidate_steps": [2]}}
    key = f"paceline.dev/{path.rsplit('/', 1)[1]}"
    templates = [job["spec"]["template"] for job in jobs_of(here, run)]
    kept = [revision["data"]["template"] for revision in here.list("controllerrevisions", "paceline.dev/pool")]
    assert [template["metadata"]["annotations"][key] for template in templates] == [text] * len(templates)
    assert len(templates) == 2
    assert [t["metadata"]["annotations"][key] for t in kept if "annotations" in t["metadata"]] == [text]


@pytest.mark.timeout(1500)
def test_a_search_writes_the_schedule_that_a_gate_compares(here: Namespace, hub: str) -> None:
    """On the emulated head a chain of one step is the fastest for one user who chats, 1.21x to 1.18x, and one of two
    steps for 32, 1.34x to 1.30x."""
    ranges = {
        "numSteps": {"min": 1, "max": 3},
        "topK": {"min": 1, "max": 1},
        "numDraftTokens": {"min": 2, "max": 4},
    }
    chats = [
        {"name": name, "source": "builtin://chat", "requests": 12, "maxTokens": 48} for name in ("morning", "evening")
    ]
    pool = {"name": POOL, "replicas": 1, "concurrency": [1, 32], "search": {**ranges, "schedule": True}}
    benchmark = {"datasets": chats, "decideAfterRounds": [2, 4]}
    here.apply(small(NAME, hub, pools=[pool], benchmark=benchmark))

    search = here.wait("what the search finds", lambda: ended(here, "Search"), 600)
    found = search["status"]["search"]
    assert [(level["concurrency"], level["numSteps"]) for level in found["levels"]] == [(1, 1), (32, 2)]
    assert [step["numSteps"] for step in found["schedule"]] == [1, 2]

    gate = here.wait("the gate's verdict", lambda: ended(here, "Gate"), 900)
    arms = [arm["name"] for arm in gate["spec"]["arms"]]
    (written,) = [arm for arm in gate["spec"]["arms"] if arm["name"].startswith("schedule-")]
    assert {"baseline", "adaptive"} < set(arms)
    assert [(step["fromBatchSize"], step["numSteps"]) for step in written["schedule"]] == [
        (step["fromBatchSize"], step["numSteps"]) for step in found["schedule"]
    ]
    threshold = found["schedule"][1]["fromBatchSize"]
    assert {threshold - 1, threshold} < {load["concurrency"] for load in gate["spec"]["workloads"]}
    verdict = gate["status"]["verdict"]
    assert verdict["outcome"] == "Promote", verdict
    means = {one["arm"]: float(one["ratio"]) for one in gate["status"]["results"] if one["workload"] == "mean"}
    assert means[written["name"]] > 0.95 * means[verdict["winner"]]
    here.wait("it to be served", served(here, NAME, verdict["winner"]), 180)


def ended(here: Namespace, purpose: str) -> Manifest | None:
    runs = here.list("bench", f"paceline.dev/pool={POOL}")
    return next((r for r in runs if r["spec"]["purpose"] == purpose and r.get("status", {}).get("verdict")), None)
