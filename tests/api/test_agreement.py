"""`paceline validate` and the API server agree: an edit of the example is right for both, or wrong for both."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.apiserver import Running
from tests.api.refusals import GONE, Edit, example
from tests.api.test_refusals import dry_run

from paceline.api import problems

CODE = {"name": "code", "source": "builtin://code"}
texts = st.sampled_from(
    [
        "",
        "a",
        "A-b",
        "main",
        "-",
        "0",
        "0.05",
        "0.5",
        "0.95",
        "1",
        "30m",
        "1h",
        "m",
        "a/b",
        "hf://a/b",
        "pvc://a/b",
        "é",
        "a b",
        "1Gi",
    ]
)
numbers = st.sampled_from([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 32, 64, 65, 96, 512, 4096, 4097, 2**31, 2**63])
anything = texts | numbers | st.sampled_from([True, None, 1.5, [], {}, ["a"], [1, 2], [2, 1], [1, 1], {"a": "b"}])

POOL = "spec.pools.1"
TREE = f"{POOL}.candidates.1.tree"
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "metadata.name": texts,
    "spec.suspend": anything,
    "spec.target.source": texts,
    "spec.target.revision": texts,
    "spec.target.servedName": texts,
    "spec.draft": st.sampled_from([GONE, {"algorithm": "NGRAM"}, {"algorithm": "EAGLE"}, {}]),
    "spec.engine.version": texts,
    "spec.engine.image": texts,
    "spec.engine.args": anything,
    "spec.engine.env": st.sampled_from([[{"name": "A"}], [{"name": "A"}, {"name": "A"}], [{}], [{"name": "0"}]]),
    "spec.accelerator.product": texts,
    "spec.accelerator.count": numbers,
    "spec.accelerator.tensorParallelSize": numbers,
    "spec.accelerator.resourceName": texts,
    "spec.cache.claim": st.just(GONE),
    "spec.cache.hostPath": texts | st.just("/models"),
    "spec.cache.existingClaim": texts,
    f"{POOL}.name": texts,
    f"{POOL}.replicas": numbers,
    f"{POOL}.concurrency": st.lists(numbers, max_size=3),
    f"{POOL}.datasets": st.lists(st.sampled_from(["code", "chat", "math"]), max_size=3),
    f"{POOL}.candidates.1.name": texts | st.sampled_from(["wide", "baseline"]),
    f"{POOL}.candidates.0.draft": st.sampled_from([{"algorithm": "NGRAM"}, {"algorithm": "EAGLE"}]),
    TREE: st.just(GONE),
    f"{TREE}.numSteps": numbers,
    f"{TREE}.topK": numbers,
    f"{TREE}.numDraftTokens": numbers,
    "spec.gate.minimumImprovement": texts,
    "spec.gate.confidence": texts,
    "spec.gate.varianceFloor": texts,
    "spec.benchmark.decideAfterRounds": st.lists(numbers, max_size=3),
    "spec.benchmark.datasets": st.lists(
        st.sampled_from(
            [CODE, {**CODE, "requests": 96}, {**CODE, "requests": 6}, {**CODE, "name": "chat", "weight": 0}]
        ),
        max_size=2,
    ),
    "spec.benchmark.maxEvidenceAge": texts,
    "spec.promotion.revisionHistoryLimit": numbers,
}
edits = st.sampled_from(sorted(FIELDS)).flatmap(
    lambda path: st.builds(Edit, path=st.just(path), value=FIELDS[path], blames=st.just(""), says=st.just(""))
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(edits, min_size=1, max_size=2, unique_by=lambda edit: edit.path.removesuffix(".tree")))
def test_desk_and_server_agree(apiserver: Running, made: list[Edit]) -> None:
    manifest = example()
    for edit in sorted(made, key=lambda edit: -edit.path.count(".")):
        manifest = edit.on(manifest)
    answer = dry_run(apiserver, manifest)
    refused = answer.get("status") == "Failure" and answer["message"]
    found = [str(problem) for problem in problems(manifest)]
    assert bool(found) == bool(refused), found or refused
