"""A candidate's own engine: what it takes from the spec's, and what a person is told about it."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.support.edits import GONE, changed
from tests.support.example import FILE
from tests.support.example import run as example_run
from tests.support.messages import Says

from paceline.api import deployment, run, run_manifest_spec
from paceline.api.problems import problems
from paceline.cli.validate import wrong
from paceline.core import Arm, Engine, by_server, server_of
from paceline.evidence import fingerprint

NEXT = "lmsysorg/sglang:v0.5.24"


def with_engine(engine: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    """The example with a third candidate."""
    asked = yaml.safe_load(FILE.read_text())
    third = {"name": "next", "engine": engine, **candidate}
    return changed(
        asked,
        ("spec.candidates", [*asked["spec"]["candidates"], third]),
        ("spec.pools.0.candidates", ["wide", "next"]),
        ("spec.engine.env", ENV),
    )


ENV = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


def third(asked: dict[str, Any]) -> Arm:
    return next(arm for arm in deployment(asked).pools[0].arms if arm.name == "next")


def engine_of(asked: dict[str, Any]) -> Engine:
    found = third(asked).engine
    assert found is not None
    return found


def test_it_has_what_it_does_not_name_from_the_engine_of_all() -> None:
    shared = deployment(with_engine({"image": NEXT})).server.engine
    own = engine_of(with_engine({"image": NEXT}))
    assert (own.type, own.version, own.image) == ("SGLang", "0.5.24", NEXT)
    assert (own.args, own.env, own.trust_remote_code) == (shared.args, shared.env, shared.trust_remote_code)


def test_arguments_are_replaced_as_a_whole_and_variables_by_name() -> None:
    own = engine_of(with_engine({"args": ["--dtype=bfloat16"], "env": [{"name": "B", "value": "3"}]}))
    assert own.args == ("--dtype=bfloat16",)
    assert own.env == ({"name": "A", "value": "1"}, {"name": "B", "value": "3"})
    assert engine_of(with_engine({"args": []})).args == ()


def test_another_engine_gets_no_arguments_that_it_does_not_know() -> None:
    own = engine_of(with_engine({"image": "vllm/vllm-openai:v0.33.0"}))
    assert (own.type, own.version, own.args) == ("vLLM", "0.33.0", ())


def test_a_candidate_without_a_shape_does_not_speculate_whatever_the_default_draft_is() -> None:
    assert third(with_engine({"image": NEXT})).draft is None
    assert third(with_engine({"image": NEXT}, tree={"numSteps": 3})).draft is not None


@pytest.mark.parametrize(
    ("engine", "shape"),
    [
        ({"image": NEXT}, {}),
        ({"image": "vllm/vllm-openai:v0.33.0"}, {}),
        ({"args": []}, {}),
        ({"env": [{"name": "B", "value": "3"}]}, {"tree": {"numSteps": 3}}),
        ({"image": "docker.io/ours/fork:1", "version": "0.5.23", "args": ["--dtype=half"]}, {"tree": {"numSteps": 3}}),
    ],
)
def test_a_run_has_the_same_arms_as_its_deployment(engine: dict[str, Any], shape: dict[str, Any]) -> None:
    asked = example_run()
    arm = third(with_engine(engine, **shape))
    read = run({"spec": run_manifest_spec(replace(asked, arms=(*asked.arms, pinned(arm))))})
    assert read.arms[-1] == pinned(arm)
    assert by_server(read.server, read.arms)[-1][0] == server_of(asked.server, arm)


def pinned(arm: Arm) -> Arm:
    if arm.draft is None or arm.draft.model is None:
        return arm
    return replace(arm, draft=replace(arm.draft, model=replace(arm.draft.model, commit="2" * 40)))


def test_no_arguments_are_another_question_than_those_of_all() -> None:
    def asked(engine: dict[str, Any]) -> str:
        spec = {"arms": [{"name": "baseline"}, {"name": "a", "engine": engine}], "gate": {}, "workloads": []}
        return fingerprint(spec)

    env = [{"name": "B", "value": "3"}]
    assert len({asked({"env": env}), asked({"env": env, "args": []}), asked({"env": env, "args": ["--x"]})}) == 3


@pytest.mark.parametrize(
    ("path", "engine", "candidate"),
    [
        ("engine.image", {"version": "0.5.24"}, {}),
        ("engine.version", {"image": "docker.io/ours/fork:1"}, {}),
        ("engine.type", {"image": NEXT, "type": "vLLM"}, {}),
        ("engine", {}, {}),
        ("engine", {"env": []}, {}),
        ("engine", {"env": ENV}, {}),
        ("engine.type", {"image": "ghcr.io/sgl-project/sgl-jax:v0.1.0", "type": "SGLangJAX", "version": "0.1.0"}, {}),
        ("engine.args[0]", {"args": ["--attention-backnd=triton"]}, {}),
        ("engine.env", {"env": [{"name": "SGLANG_SIMULATE_ACC_LEN", "value": "3"}]}, {}),
        ("engine.args[0]", {"args": ["--max-running-requests=2"]}, {}),
        ("", {"image": NEXT}, {"draft": {"algorithm": "NGRAM"}}),
        ("tree.topK", {"image": "vllm/vllm-openai:v0.33.0"}, {"tree": {"numSteps": 3, "topK": 4, "numDraftTokens": 8}}),
    ],
)
def test_what_is_wrong_is_told_at_the_candidate(
    path: str, engine: dict[str, Any], candidate: dict[str, Any], says: Says
) -> None:
    found = wrong(with_engine(engine, **candidate))
    assert ".".join(filter(None, ("spec.candidates[2]", path))) in {one.path for one in found}
    says(*found)


def test_twins_are_seen_through_their_engines(says: Says) -> None:
    asked = with_engine({"image": NEXT}, tree={"numSteps": 2})
    twin = {"name": "twin", "engine": {"image": NEXT, "version": "0.5.24", "type": "SGLang"}, "tree": {"numSteps": 2}}
    (one,) = problems(changed(asked, ("spec.candidates", [*asked["spec"]["candidates"], twin])))
    assert one.path == "spec.candidates[3]"
    says(one)


def test_a_published_image_has_no_hook_of_a_fork() -> None:
    assert engine_of(with_engine({"image": "docker.io/ours/fork:2", "version": "0.5.7"})).eagle3_targets
    assert not engine_of(with_engine({"image": NEXT})).eagle3_targets


def test_a_variable_of_the_pod_template_cannot_be_the_change(says: Says) -> None:
    template = {"spec": {"containers": [{"name": "server", "env": [{"name": "B", "value": "9"}]}]}}
    asked = changed(with_engine({"env": [{"name": "B", "value": "3"}]}), ("spec.engine.podTemplate", template))
    found = [one for one in wrong(asked) if one.path == "spec.candidates[2].engine.env"]
    says(*found)
    assert len(found) == 1


def test_an_endpoint_picker_knows_one_port(says: Says) -> None:
    picker = {"name": "epp", "port": {"number": 9002}}
    asked = changed(with_engine({"image": "vllm/vllm-openai:v0.33.0"}), ("spec.pools.0.endpointPickerRef", picker))
    (one,) = [one for one in wrong(asked) if "endpointPickerRef" in one.path]
    says(one)
    assert wrong(changed(with_engine({"image": NEXT}), ("spec.pools.0.endpointPickerRef", picker))) == []


def test_a_search_compares_trees_on_one_engine(says: Says) -> None:
    search = {"numSteps": {"min": 1, "max": 3}, "topK": {"min": 1, "max": 1}, "numDraftTokens": {"min": 2, "max": 4}}
    asked = changed(with_engine({"image": NEXT}), ("spec.pools.0.search", search), ("spec.pools.0.candidates", GONE))
    (one,) = problems(asked)
    assert one.path == "spec.candidates[2].engine"
    says(one)
