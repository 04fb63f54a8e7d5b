"""Prompts of the hub: brought beside the models, pinned as they are, and no affair of a server's."""

import json
from typing import Any

from tests.support.stories import told
from tests.support.world import World, example

SOURCE = "hf://datasets/paceline-test/prompts/code.jsonl"


def with_prompts(*pools: str) -> dict[str, Any]:
    """The example, measured on them alone."""
    manifest = example(*pools)
    manifest["spec"]["benchmark"]["datasets"] = [{"name": "code", "source": SOURCE}]
    return manifest


def fetch_request(world: World) -> Any:
    """Of the prefetch under way."""
    (job,) = world.under_way("fetch")
    (fetch,) = job["spec"]["template"]["spec"]["containers"]
    return json.loads(next(v["value"] for v in fetch["env"] if v["name"] == "PACELINE_FETCH"))


def commit(world: World) -> str:
    (dataset,) = world.artifacts(datasets=True)
    return str(dataset["commit"])


def revision(world: World) -> str:
    (servers,) = world.cluster.of("Deployment")
    return str(servers["spec"]["template"]["metadata"]["labels"]["paceline.dev/revision"])


def measured(world: World) -> None:
    """The latency pool on these prompts, up to its first round; told is what comes after."""
    world.apply(with_prompts("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()


@told
def test_prompts_come_with_the_models(world: World) -> None:
    """Both or neither: nothing is served before they are there, and the run says at which commit."""
    world.apply(with_prompts("latency"))
    assert fetch_request(world)["datasets"] == [{"source": SOURCE, "revision": "main"}]
    world.prefetch_ends()
    world.servers_ready()
    (run,) = world.runs("latency")
    (workload,) = run["spec"]["workloads"]
    assert (workload["source"], workload["commit"]) == (SOURCE, commit(world))
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert world.serving("latency") == "wide"


@told
def test_other_prompts_are_another_question_and_no_other_server(world: World) -> None:
    """Branches have moved meanwhile; only that of the dataset whose revision was changed is asked for."""
    measured(world)
    before, served, models = commit(world), revision(world), world.artifacts()
    world.edit("revision: v2", lambda spec: spec["benchmark"]["datasets"][0].update(revision="v2"))
    assert [model["commit"] for model in fetch_request(world)["models"]] == [model["commit"] for model in models]
    assert "commit" not in fetch_request(world)["datasets"][0]
    assert before in fetch_request(world)["inUse"]  # the run of before may still have a round under way
    world.prefetch_ends(today="a week later")
    first, second = world.runs("latency")
    assert first["status"]["fingerprint"] != second["status"]["fingerprint"]
    assert [run["spec"]["workloads"][0]["commit"] for run in (first, second)] == [before, commit(world)]
    assert (revision(world), world.artifacts()) == (served, models)
    assert (world.condition("Ready"), world.condition("Reconciling")) == ("True Serving", "")


@told
def test_the_commit_that_is_measured_may_be_named(world: World) -> None:
    """What it is called is no part of the question: the run goes on."""
    measured(world)
    (before,) = world.runs("latency")
    pinned = commit(world)
    world.edit("the commit", lambda spec: spec["benchmark"]["datasets"][0].update(revision=pinned))
    assert fetch_request(world)["datasets"] == [{"source": SOURCE, "revision": pinned, "commit": pinned}]
    world.prefetch_ends()
    (after,) = world.runs("latency")
    assert (after["metadata"]["name"], world.under_way("round") != []) == (before["metadata"]["name"], True)


@told
def test_another_head_moves_no_prompts(world: World) -> None:
    """They were resolved, and so was the target; a prefetch for something else brings these very commits."""
    measured(world)
    before = commit(world)
    world.edit("another head", lambda spec: spec["draft"].update(source="hf://other/head"))
    assert fetch_request(world)["datasets"] == [{"source": SOURCE, "revision": "main", "commit": before}]
    assert ["commit" in model for model in fetch_request(world)["models"]] == [True, False]
    world.prefetch_ends(today="a week later")
    assert commit(world) == before


@told
def test_one_more_dataset_leaves_the_others_where_they_are(world: World) -> None:
    measured(world)
    more = {"name": "chat", "source": SOURCE.replace("code.jsonl", "data/chat.json")}
    world.edit("one more", lambda spec: spec["benchmark"]["datasets"].append(more))
    assert [("commit" in dataset) for dataset in fetch_request(world)["datasets"]] == [True, False]
    world.prefetch_ends(today="a week later")
    assert len(world.artifacts(datasets=True)) == 2


@told
def test_prompts_that_are_asked_for_no_more_need_no_job(world: World) -> None:
    """Nor does who wants them again: they are on the volume until the next prefetch."""
    measured(world)
    builtin, before = [{"name": "code", "source": "builtin://code"}], world.spec()["benchmark"]["datasets"]
    world.edit("a built-in set", lambda spec: spec["benchmark"].update(datasets=builtin))
    assert not world.under_way("fetch")
    world.edit("as before", lambda spec: spec["benchmark"].update(datasets=before))
    assert not world.under_way("fetch")


@told
def test_prompts_that_cannot_be_had_are_named_by_their_field(world: World) -> None:
    """The pod knows sources alone."""
    world.apply(with_prompts("latency"))
    world.prefetch_fails("no such file in revision main; correct the path", source=SOURCE)
    assert "spec.benchmark.datasets[0].source: " in world.message("Stalled")

    world.edit("revision: v9", lambda spec: spec["benchmark"]["datasets"][0].update(revision="v9"))
    world.prefetch_fails("no revision v9; name a branch, tag or commit it has", source=SOURCE, part="revision")
    assert "spec.benchmark.datasets[0].revision: " in world.message("Stalled")


def test_what_no_pool_is_measured_on_is_not_brought() -> None:
    manifest = with_prompts("latency")
    manifest["spec"]["benchmark"]["datasets"].append({"name": "chat", "source": "builtin://chat"})
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [1], "datasets": ["chat"]}]
    world = World()
    world.apply(manifest)
    assert "datasets" not in fetch_request(world)
