"""What a spec comes to where it leaves out what follows from the rest stands in status."""

from typing import Any

from tests.support.world import World, example


def test_what_is_left_out_stands_in_status() -> None:
    manifest = example()
    spec: dict[str, Any] = manifest["spec"]
    spec["engine"] |= {"image": "lmsysorg/sglang:v0.5.23"}
    for name in ("type", "version"):
        spec["engine"].pop(name, None)
    spec["target"].pop("servedName", None)
    spec["cache"] = {"claim": {"size": "400Gi"}}
    spec["gate"] = {"confidence": "90%"}
    spec["pools"][1]["gate"] = {"minImprovement": "2%", "decideAfterRounds": [4]}
    world = World()
    world.apply(manifest)
    found = world.status()
    assert found["servedName"] == spec["target"]["source"].removeprefix("hf://")
    assert found["engine"] == "SGLang 0.5.23"
    assert found["claimName"] == f"{manifest['metadata']['name']}-models"
    latency, throughput = found["pools"]  # before any of their servers
    assert (latency["candidates"], throughput["candidates"]) == (["wide"], ["narrow", "wide"])
    assert latency["gate"]["minImprovement"] == "5%"
    assert throughput["gate"] == {
        "minImprovement": "2%",
        "maxRegression": "3%",
        "maxSlowdown": "3%",
        "confidence": "90%",
        "decideAfterRounds": [4],
    }


def test_a_spec_that_is_refused_comes_to_nothing() -> None:
    world = World()
    world.apply(example())
    assert world.status()["engine"] == "SGLang 0.5.6"
    assert {"candidates", "gate"} <= world.pool("latency").keys()
    world.edit("no head", lambda spec: spec.pop("draft"))
    assert not {"servedName", "engine", "claimName"} & world.status().keys()
    assert not {"candidates", "gate"} & world.pool("latency").keys()
