"""examples/sweep-gb10.yaml on the cluster, without any SpeculativeDeployment: a person asks and gets the table."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import yaml
from tests.cluster.example import emulated
from tests.cluster.test_examples import EXAMPLES, H200, IMAGE, words
from tests.cluster.volumes import NO_XET, filled
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.overlay import merged

from paceline.core import WAVES

WHOLE_SECONDS = 150
"""From apply to the table, on two cores."""
TARGET, HEAD = "Qwen/Qwen3-Coder-30B-A3B-Instruct", "yuhuili/Eagle3-Qwen3-30B-A3B"


def example(commits: Mapping[str, str]) -> Manifest:
    """As it is, filled in, at its first and its last concurrency, with fewer and shorter answers."""
    manifest: Manifest = yaml.safe_load((EXAMPLES / "sweep-gb10.yaml").read_text())
    spec = manifest["spec"]
    overlay = {
        "target": {"commit": commits[TARGET]},
        "engine": {"image": IMAGE, "env": emulated()},
        "arms": [merged(arm, {"draft": {"commit": commits[HEAD]}} if "draft" in arm else {}) for arm in spec["arms"]],
        "workloads": [
            {**workload, "requests": max(16, WAVES * workload["concurrency"]), "maxTokens": 24}
            for workload in (spec["workloads"][0], spec["workloads"][-1])
        ],
        "gate": {"confidence": "80%", "decideAfterRounds": [2]},
    }
    manifest["spec"] = merged(merged(spec, overlay), H200)
    return manifest


def test_a_sweep_speculates_for_one_and_not_for_eight(here: Namespace, hub: str) -> None:
    """Reported: 35 for 25 tokens per second alone, 270 for 316 with eight requests at a time."""
    manifest = example(models(here, hub))
    here.apply(manifest)
    run = here.wait("the table", ended(here, manifest["metadata"]["name"]), WHOLE_SECONDS)
    status = run["status"]

    assert [(spot["concurrency"], spot["fastest"]) for spot in status["crossover"]] == [(1, "four"), (8, "baseline")]
    for spot, reported in zip(status["crossover"], (35 / 25, 270 / 316), strict=True):
        assert abs(float(spot["ratio"]) - reported) < 0.1
    assert status["verdict"]["message"].startswith("speculate up to 1, not at 8: the baseline takes over somewhere")
    assert (status["verdict"]["reason"], status["emulated"]) == ("BaselineTakesOver", True)
    assert [point["why"] for entry in run["rounds"] for point in entry["points"] if not point["valid"]] == []
    assert len(run["rounds"]) == 2
    assert all(argument_of(job, "--max-num-seqs") == ["48", "48"] for job in here.list("jobs", "paceline.dev/run"))
    assert here.list("specdep") == here.list("deployments") == []


def argument_of(job: Manifest, flag: str) -> list[str]:
    """Of every arm of a round."""
    said = words(job)
    return [following for word, following in pairwise(said) if word == flag]


def ended(here: Namespace, name: str) -> Callable[[], Manifest | None]:
    def look() -> Manifest | None:
        found = here.get("bench", name)
        if failed := condition(found, "Failed"):
            here.fail(f"failed: {failed['message']}")
        return found if says(found, "Complete", "True", "Swept") else None

    return look


def models(here: Namespace, hub: str) -> Mapping[str, str]:
    """A claim `models` with both models as huggingface-cli leaves them; repository → commit."""
    download = (
        "from huggingface_hub import snapshot_download as get;"
        f"print(*(f'{{name}}={{get(name).rpartition(chr(47))[2]}}' for name in ('{TARGET}', '{HEAD}')))"
    )
    said = filled(here, "models", download, {"HF_HOME": "/models", "HF_ENDPOINT": hub, **NO_XET})
    return dict(pair.split("=") for pair in said.split())
