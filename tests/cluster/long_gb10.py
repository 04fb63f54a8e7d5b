"""examples/gb10-single-gpu.yaml to both of its verdicts: speculate for one user, not for eight (vLLM, emulated)."""

from collections.abc import Callable

import yaml
from tests.cluster.example import emulated
from tests.cluster.test_examples import EXAMPLES, H200, IMAGE, cache
from tests.support.kubernetes import Manifest, Namespace, condition
from tests.support.overlay import merged

BOTH_SECONDS = 240
"""From apply to the second verdict, on two cores: the one GPU is measured on by one run after the other."""


def example(hub: str) -> Manifest:
    """As it is, with fewer and shorter answers."""
    manifest: Manifest = yaml.safe_load((EXAMPLES / "gb10-single-gpu.yaml").read_text())
    overlay = {
        "engine": {"image": IMAGE, "env": emulated()},
        "cache": cache(manifest["spec"]["cache"], hub),
        "benchmark": {
            "datasets": [{"name": "code", "source": "builtin://code", "requests": 24, "maxTokens": 24}],
        },
        "gate": {"confidence": "80%", "decideAfterRounds": [2]},
    }
    manifest["spec"] = merged(merged(manifest["spec"], overlay), H200)
    return manifest


def test_one_is_faster_with_the_head_and_eight_are_not(here: Namespace, hub: str) -> None:
    """Reported: 35 for 25 tokens per second alone, 270 for 316 with eight requests at a time."""
    manifest = example(hub)
    here.apply(manifest)
    verdicts = here.wait("both verdicts", decided(here, manifest["metadata"]["name"]), BOTH_SECONDS)
    alone, parallel = verdicts["alone"], verdicts["parallel"]
    assert (alone["outcome"], alone["winner"]) == ("Promote", "four")
    assert abs(float(alone["evidence"]["speedup"]) - 1.4) < 0.1
    assert parallel["outcome"] == "Reject"
    assert "winner" not in parallel or not parallel["winner"]

    runs = {run["spec"]["pool"]: run for run in here.list("bench")}
    ratios = {pool: float(run["status"]["results"][0]["ratio"]) for pool, run in runs.items()}
    assert abs(ratios["parallel"] - 270 / 316) < 0.08
    for run in runs.values():
        assert run["status"]["engineVersion"] == "0.33.0+emulated"
        points = [point for entry in run["rounds"] for point in entry["points"]]
        assert [point["why"] for point in points if not point["valid"]] == []
        lengths = {point["arm"]: point.get("acceptLength") for point in points}
        assert lengths["baseline"] is None
        assert 2.3 < float(lengths["four"]) < 2.8


def decided(here: Namespace, name: str) -> Callable[[], Manifest | None]:
    def look() -> Manifest | None:
        found = here.get("specdep", name)
        if stalled := condition(found, "Stalled"):
            here.fail(f"stalled: {stalled['message']}")
        pools = {pool["name"]: pool for pool in found.get("status", {}).get("pools", ())}
        verdicts = {pool: status["verdict"] for pool, status in pools.items() if "verdict" in status}
        return verdicts if len(verdicts) == 2 else None

    return look
