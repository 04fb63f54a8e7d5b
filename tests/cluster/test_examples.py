"""An example of every engine and system, from apply to its verdict on the cluster: one pool, short rounds, emulated.

What an example says of models, engine, candidates and accelerators stands; `smaller` is all that is laid over it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from tests.cluster.example import emulated
from tests.cluster.volumes import NO_XET, filled
from tests.support.containers import container
from tests.support.kubernetes import Manifest, Namespace, condition
from tests.support.overlay import merged

EXAMPLES = Path(__file__).parents[2] / "examples"
IMAGE = "localhost/paceline-sglang-emulator:dev"
"""Speaks for every engine: it is started as the engine's own image is."""
VERDICTS = ("Promote", "Reject", "Inconclusive")
WHOLE_SECONDS = 150
"""From apply to the verdict, on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`over` is laid over the example's spec, `argument` stands in what an arm is started with."""

    example: str
    argument: str
    over: Manifest = field(default_factory=dict)

    def __str__(self) -> str:
        return self.example


H200: Manifest = {"accelerator": {"product": "NVIDIA-H200"}}
"""The product of the cluster's nodes, where the example has another."""

DOWNLOAD = """
from huggingface_hub import snapshot_download as get
get("Qwen/Qwen3-8B", local_dir="/models/qwen/Qwen3-8B")
get("thoughtworks/Qwen3-8B-Eagle3", local_dir="/models/heads/Qwen3-8B-Eagle3")
"""
"""What bring-your-own-pvc expects on its claim."""

CASES = (
    Case(example="qwen3-coder-next", argument="EAGLE3"),
    Case(example="qwen3-coder-30b-vllm", argument="--speculative-config", over=H200),
    Case(example="qwen3-8b-tpu", argument="sgl_jax.launch_server"),
)


def version(engine: Manifest) -> dict[str, str]:
    """SGLang is emulated in the release that the example's image speaks."""
    return {"VERSION": engine["version"]} if engine["type"] == "SGLang" else {}


def smaller(case: Case, hub: str) -> Manifest:
    """Its first pool with one server, one user and six short answers a round."""
    manifest: Manifest = yaml.safe_load((EXAMPLES / f"{case.example}.yaml").read_text())
    first = manifest["spec"]["pools"][0]
    overlay: Manifest = {
        "engine": {"image": IMAGE, "env": emulated(**version(manifest["spec"]["engine"]))},
        "cache": cache(manifest["spec"]["cache"], hub),
        "pools": [{**first, "replicas": 1, "load": [{"concurrency": [1]}]}],
        "benchmark": {
            "datasets": [{"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 24}],
        },
        "gate": {"confidence": "80%", "decideAfterRounds": [2]},
    }
    if "parity" in manifest["spec"].get("benchmark", {}):
        overlay["benchmark"]["parity"] = {"samples": 2, "maxTokens": 24}
    manifest["spec"] = merged(merged(manifest["spec"], overlay), case.over)
    return manifest


def cache(asked: Manifest, hub: str) -> Manifest:
    local = [{"name": "HF_ENDPOINT", "value": hub}, {"name": "HF_HUB_DISABLE_XET", "value": "1"}]
    return {"env": local, **({"claim": {"size": "1Gi"}} if "claim" in asked else {})}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_example_comes_to_its_verdict(here: Namespace, hub: str, case: Case) -> None:
    manifest = smaller(case, hub)
    here.apply(manifest)
    status = here.wait("its verdict to be served", decided(here, manifest), WHOLE_SECONDS)
    check(here, manifest, status, case.argument)


def test_the_example_with_models_of_ones_own(here: Namespace, hub: str) -> None:
    """No hub is asked: the prefetch would not find it."""
    case = Case(example="bring-your-own-pvc", argument="/models/heads/Qwen3-8B-Eagle3", over=H200)
    manifest = smaller(case, "http://no-hub.invalid")
    filled(here, manifest["spec"]["cache"]["claimName"], DOWNLOAD, {"HF_ENDPOINT": hub, "HOME": "/tmp", **NO_XET})
    here.apply(manifest)
    status = here.wait("its verdict to be served", decided(here, manifest), WHOLE_SECONDS)
    check(here, manifest, status, case.argument)


def decided(here: Namespace, manifest: Manifest) -> Callable[[], Manifest | None]:
    """The pool's status, once its verdict is served; what needs a person ends the wait."""

    def look() -> Manifest | None:
        found = here.get("specdep", manifest["metadata"]["name"])
        if stalled := condition(found, "Stalled"):
            here.fail(f"stalled: {stalled['message']}")
        pools = found.get("status", {}).get("pools", ())
        calm = condition(found, "Ready") and not condition(found, "Reconciling")
        return pools[0] if pools and "verdict" in pools[0] and calm and _serves(pools[0]) else None

    return look


def _serves(pool: Manifest) -> bool:
    """What its verdict says."""
    return bool(pool["serving"]["arm"] == (pool["verdict"]["winner"] or "baseline"))


def check(here: Namespace, manifest: Manifest, pool: Manifest, argument: str) -> None:
    assert pool["verdict"]["outcome"] in VERDICTS, pool["verdict"]["message"]
    (run,) = here.list("bench")
    assert run["status"]["engineVersion"] == f"{manifest['spec']['engine']['version']}+emulated"
    points = [point for entry in run["rounds"] for point in entry["points"]]
    assert [point["why"] for point in points if not point["valid"]] == []
    every = [candidate["name"] for candidate in manifest["spec"]["candidates"]]
    assert {point["arm"] for point in points} == {"baseline", *manifest["spec"]["pools"][0].get("candidates", every)}
    asked = manifest["spec"]["benchmark"].get("parity")
    for verdict in run["status"]["armVerdicts"] if asked else ():
        parity = verdict["parity"]
        assert (parity["diverged"], parity["identical"]) == (0, parity["internal"]["rounds"] * asked["samples"])
    assert all(argument in words(job) for job in here.list("jobs", "paceline.dev/component=round"))


def words(job: Manifest) -> list[str]:
    """Of all commands that the client of this round was asked to measure."""
    client = container(job["spec"]["template"], "client")
    plan = json.loads(next(v["value"] for v in client["env"] if v["name"] == "PACELINE_ROUND"))
    return [word for arm in plan["arms"] for word in arm["argv"]]
