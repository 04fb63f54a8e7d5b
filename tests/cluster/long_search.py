"""Two pools of the emulated Qwen3-Coder-Next search for their trees: a wide one for one user at a time, a chain for
32. Some seven minutes."""

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace
from tests.support.processes import Operator

from paceline.core import purpose_of

NAME = "searched"
RANGES = {"numSteps": {"min": 1, "max": 4}, "topK": {"min": 1, "max": 8}, "numDraftTokens": {"min": 2, "max": 16}}
GPU_HOURS = 1.0


def searching(hub: str) -> Manifest:
    pools = [
        {"name": "latency", "replicas": 1, "load": [{"concurrency": [1]}], "search": RANGES},
        {"name": "throughput", "replicas": 1, "load": [{"concurrency": [32]}], "search": RANGES},
    ]
    datasets = [
        {"name": name, "source": f"builtin://{name}", "requests": 12, "maxTokens": 48} for name in ("code", "terminal")
    ]
    benchmark = {"datasets": datasets, "budget": {"gpuHours": str(GPU_HOURS)}}
    return small(NAME, hub, pools=pools, benchmark=benchmark, gate={"confidence": "90%", "decideAfterRounds": [3, 6]})


def of(here: Namespace, pool: str, purpose: str) -> list[Manifest]:
    runs = here.list("bench", f"paceline.dev/pool={pool}")
    return [run for run in runs if purpose_of(run["spec"]) == purpose]


def branches(run: Manifest) -> int:
    """Of what it has found; the engine's adaptive mode is a chain, whose depth the engine chooses."""
    (arm,) = [arm for arm in run["spec"]["arms"] if arm["name"] == run["status"]["verdict"]["winner"]]
    return int(arm["tree"]["topK"]) if "tree" in arm else 1


def ended(here: Namespace, pool: str, purpose: str) -> Manifest | None:
    return next((run for run in of(here, pool, purpose) if run.get("status", {}).get("verdict")), None)


@pytest.mark.timeout(1500)
def test_each_load_finds_its_tree_though_the_operator_is_killed_twice(
    here: Namespace, hub: str, operator: Operator
) -> None:
    here.apply(searching(hub))
    here.wait("a first round of a search", lambda: rounds(here, "throughput") >= 1, 240)
    operator.kill()
    here.wait("some rounds more", lambda: rounds(here, "throughput") + rounds(here, "latency") >= 3, 300)
    operator.kill()
    found = {
        pool: here.wait(f"what {pool} finds", lambda pool=pool: ended(here, pool, "Search"), 600)
        for pool in ("latency", "throughput")
    }
    assert branches(found["latency"]) > 1
    assert branches(found["throughput"]) == 1
    gates = {}
    for pool, run in found.items():
        gate = gates[pool] = here.wait(f"the verdict of {pool}", lambda pool=pool: ended(here, pool, "Gate"), 600)
        assert gate["status"]["verdict"]["outcome"] == "Promote"
        assert {"baseline", run["status"]["verdict"]["winner"]} <= {arm["name"] for arm in gate["spec"]["arms"]}
        assert_within_the_budget(run)
        jobs = [record["job"] for record in run["rounds"]]
        assert len(jobs) == len(set(jobs))
        assert [record["round"] for record in run["rounds"] if not record["error"]] == list(
            range(len([record for record in run["rounds"] if not record["error"]]))
        )
    here.wait("both to be served", lambda: all(serves(here, pool, gates[pool]) for pool in found), 180)


def assert_within_the_budget(run: Manifest) -> None:
    status = run["status"]
    assert status["cost"]["gpuSeconds"] <= 3600 * GPU_HOURS
    assert status["verdict"]["reason"] == "Found"
    assert status["cost"]["serverStarts"] < status["search"]["candidates"] / 2
    assert status["emulated"]


def rounds(here: Namespace, pool: str) -> int:
    searches = of(here, pool, "Search")
    return len(searches[0]["rounds"]) if searches else 0


def serves(here: Namespace, pool: str, run: Manifest) -> bool:
    status = here.get("specdep", NAME)["status"]
    serving = {entry["name"]: entry.get("serving") or {} for entry in status["pools"]}
    return bool(serving[pool].get("arm") == run["status"]["verdict"]["winner"])
