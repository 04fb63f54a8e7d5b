"""Arms of two images and two engines in one round's pod, on the same devices; and an image that is gone."""

from pathlib import Path
from typing import Any

import pytest
from tests.cluster.example import IMAGE, candidate, emulated, small
from tests.cluster.images import move_tag, remove
from tests.support.kubernetes import Manifest, Namespace
from tests.support.queries import finished, measuring, run_of, served

NAME = "engines"
OTHER, GONE = "localhost/paceline-engines:dev", "localhost/paceline-gone:dev"
"""The emulated engine in images of their own."""
OLDER = {"image": OTHER, "type": "SGLang", "version": "0.5.6", "env": emulated(VERSION="0.5.6")}
VLLM = {"image": IMAGE, "type": "vLLM", "version": "0.33.0"}


def asked(name: str, hub: str, *candidates: Manifest, **spec: Any) -> Manifest:
    return small(name, hub, candidates=[candidate(), *candidates], **spec)


@pytest.mark.timeout(480)
def test_three_images_and_engines_are_measured_on_the_same_devices(here: Namespace, hub: str, tmp_path: Path) -> None:
    move_tag("engines", tmp_path, OTHER)
    others = ({"name": "older", "engine": OLDER}, {"name": "vllm", "engine": VLLM})
    here.apply(asked(NAME, hub, *others, accelerator={"count": 2}))
    run = here.wait("a run", run_of(here, NAME), 120)
    decided = here.wait("the verdict", finished(here, run), 300)
    rounds = decided["rounds"]
    assert [point["why"] for one in rounds for point in one["points"] if not point["valid"]] == []
    orders = [[replicate["arm"] for replicate in one["replicates"]] for one in rounds]
    assert {*orders[0]} == {"baseline", "wide", "older", "vllm"}
    assert orders[0] != orders[1]
    assert all(len(one["gpus"]) == 2 for one in rounds), "those that every arm was given"
    assert not any("devices" in note for one in rounds for note in one["notes"])
    images = {replicate["arm"]: replicate.get("image", "") for replicate in rounds[0]["replicates"]}
    assert images["older"] not in ("", rounds[0]["image"])
    assert images["vllm"] == rounds[0]["image"], "one image has both engines"
    verdict = decided["status"]["verdict"]
    assert (verdict["outcome"], verdict["winner"]) == ("Promote", "wide")
    assert "older differs in image, PACELINE_EMULATE_VERSION, version" in verdict["message"]
    assert "vllm differs in engine" in verdict["message"]


@pytest.mark.timeout(480)
def test_a_winner_with_an_image_of_its_own_is_served_from_it(here: Namespace, hub: str, tmp_path: Path) -> None:
    move_tag("engines", tmp_path, OTHER)
    own = {"image": OTHER, "type": "SGLang", "version": "0.5.23"}
    here.apply(small("release", hub, candidates=[{**candidate(), "engine": own}]))
    here.wait("the winner to be served", served(here, "release", "wide"), 300)
    (pod,) = here.list("pods", "paceline.dev/component=server,paceline.dev/arm=wide")
    assert pod["spec"]["containers"][0]["image"] == OTHER
    assert "--speculative-algorithm" in pod["spec"]["containers"][0]["command"]


@pytest.mark.timeout(900)
def test_an_image_that_is_gone_when_its_turn_comes_costs_its_own_arm(here: Namespace, hub: str, tmp_path: Path) -> None:
    move_tag("gone", tmp_path, GONE)
    own = {"image": GONE, "type": "SGLang", "version": "0.5.23"}
    pod = {"podTemplate": {"spec": {"containers": [{"name": "server", "imagePullPolicy": "Never"}]}}}
    here.apply(asked("gone", hub, {"name": "next", "engine": own}, engine=pod))
    run = here.wait("a run", run_of(here, "gone"), 120)
    here.wait("the first round to measure", measuring(here, run, 0), 60)
    remove(GONE)
    decided = here.wait("the verdict", finished(here, run), 600)
    verdict = decided["status"]["verdict"]
    assert (verdict["outcome"], verdict["winner"]) == ("Promote", "wide")
    reasons = [one.get("reason") for two in decided["rounds"] for one in two["replicates"] if one["arm"] == "next"]
    assert reasons == ["ImagePull", "ImagePull"]
    assert "ErrImageNeverPull" in verdict["message"]
