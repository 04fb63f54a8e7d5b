"""Files that arguments name: in a served pod and in a round's, under one path and with one text."""

import json
from dataclasses import replace
from typing import Any

from tests.support import example, several_nodes
from tests.support.containers import container
from tests.support.example import DEPLOYED, RUN, SETTINGS

from paceline.core import Arm, Depth, Server
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.render import controller_revision, rendering, round_job
from paceline.render.files import files_in
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

CONFIG = "--speculative-adaptive-config"


def scheduled(name: str, *falling: tuple[int, int]) -> Arm:
    depths = tuple(Depth(from_batch_size=size, num_steps=steps) for size, steps in falling)
    return replace(example.arm("wide"), name=name, tree=None, depth_by_batch_size=depths)


FALLS, SLOWER = scheduled("falls", (1, 5), (8, 1), (32, 0)), scheduled("slower", (1, 3), (32, 0))


def seen(pod: dict[str, Any], name: str = "server") -> dict[str, str]:
    """The files of a container that a kubelet makes of its pod's annotations."""
    mounted = {mount["name"]: mount["mountPath"] for mount in container(pod, name)["volumeMounts"]}
    fields = {f"metadata.annotations['{key}']": v for key, v in pod["metadata"].get("annotations", {}).items()}
    return {
        f"{mounted[volume['name']]}/{item['path']}": fields[item["fieldRef"]["fieldPath"]]
        for volume in pod["spec"]["volumes"]
        for item in volume.get("downwardAPI", {}).get("items", ())
        if volume["name"] in mounted
    }


def served(arm: Arm, server: Server | None = None) -> dict[str, Any]:
    return rendering(DEPLOYED, "latency", server or example.server(), arm, "0123456789", SETTINGS)


def measured(*arms: Arm, planned: tuple[Arm, ...] = ()) -> dict[str, Any]:
    run = replace(example.run(), arms=(example.arm("baseline"), *arms))
    plan = round_plan(RUN, run, planned or run.arms, number=0, try_=0)
    pod: dict[str, Any] = round_job(RUN, run, plan, ANYWHERE, SETTINGS)["spec"]["template"]
    return pod


def named(argv: Any) -> str:
    return str(argv[list(argv).index(CONFIG) + 1])


def test_the_file_that_is_served_is_the_one_that_was_measured() -> None:
    serving, measuring = served(FALLS)["template"], measured(FALLS, SLOWER)
    path = named(serving["spec"]["containers"][0]["command"])
    question = container(measuring, "client")["env"][0]
    plan = RoundPlan.from_json(question["value"])
    assert question["name"] == ENVIRONMENT
    paths = {command.name: named(command.argv) for command in plan.arms if command.candidate}
    assert paths["falls"] == path != paths["slower"]
    text = seen(serving)[path]
    assert json.loads(text) == {
        "1": {"candidate_steps": [5]}, "8": {"candidate_steps": [1]}, "32": {"candidate_steps": [0]},
    }  # fmt: skip
    assert seen(measuring) == {path: text, paths["slower"]: seen(served(SLOWER)["template"])[paths["slower"]]}


def test_a_kept_rendering_has_it() -> None:
    """No other object is needed to go back to it."""
    kept = controller_revision(DEPLOYED, "latency", "0123456789", served(FALLS))["data"]["template"]
    assert list(seen(kept)) == [named(kept["spec"]["containers"][0]["command"])]


def test_every_node_of_a_server_has_it() -> None:
    both = served(FALLS, several_nodes.over(2))
    assert seen(both["template"]) == seen(both["workers"]) != {}


def test_pods_of_arms_without_files_are_as_they_were() -> None:
    for pod in (served(example.arm("wide"))["template"], measured(example.arm("wide"))):
        assert "annotations" not in pod["metadata"]
        assert not any("downwardAPI" in volume for volume in pod["spec"]["volumes"])


def test_a_round_has_the_files_of_its_own_arms_and_its_client_none() -> None:
    pod = measured(FALLS, SLOWER, planned=(example.arm("baseline"), SLOWER))
    assert len(seen(pod)) == 1
    assert seen(pod, "client") == {}


def test_annotations_of_the_users_stay_beside() -> None:
    template = {"metadata": {"annotations": {"team": "search"}}}
    server = replace(example.server(), engine=replace(example.server().engine, pod_template=template))
    pod = served(FALLS, server)["template"]
    assert pod["metadata"]["annotations"]["team"] == "search"
    assert len(seen(pod)) == 1


def test_they_are_found_in_a_pod_again() -> None:
    for pod in (served(FALLS)["template"], measured(FALLS, SLOWER), measured(example.arm("wide"))):
        assert files_in(pod) == seen(pod)
