"""A static chain and a schedule of depths on SGLang: the pool comes to a verdict and serves the schedule, whose file is
the same in the rounds' pods, in what the cluster keeps of the revision, and in the served pod."""

import json

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace
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
        {
            "name": "falls",
            "depthByBatchSize": [{"fromBatchSize": 1, "numSteps": 5}, {"fromBatchSize": 8, "numSteps": 2}],
        },
    ]
    benchmark = {"datasets": [{"name": "code", "source": "builtin://code", "maxTokens": 24}]}
    pool = {"name": POOL, "replicas": 1, "load": [{"concurrency": [1, 16]}]}
    here.apply(small(NAME, hub, candidates=candidates, pools=[pool], benchmark=benchmark))
    here.wait("the schedule to be served", served(here, NAME, "falls"), WHOLE_SECONDS)

    verdict = pool_of(here.get("specdep", NAME))["verdict"]
    run = here.get("bench", verdict["evidence"]["run"])
    assert (run["status"]["verdict"]["outcome"], run["status"]["verdict"]["winner"]) == ("Promote", "falls")
    for entry in run["rounds"]:
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
