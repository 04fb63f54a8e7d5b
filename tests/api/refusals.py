"""Wrong manifests: what was done to a good one, the path of the field to blame, and what the user must read.

`EDITS` are made to examples/qwen3-coder-next.yaml, `RUN_EDITS` to the run of its throughput pool. A path ends in the
key that is set (or removed, with `GONE`).
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paceline import core
from paceline.api import deployment, run_manifest_spec

GONE = object()
EXAMPLE = Path(__file__).parents[2] / "examples" / "qwen3-coder-next.yaml"


def example() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return loaded


def example_run() -> dict[str, Any]:
    spec = deployment(example())
    pool = spec.pools[1]
    run = core.RunSpec(
        pool=pool.name, server=spec.server, arms=pool.arms, workloads=pool.workloads, gate=pool.gate, token="a-1"
    )
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "qwen3-coder-next-throughput-0123456789-1"},
        "spec": run_manifest_spec(run),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`blames` and `says` are parts of the message; the API server writes paths without `spec` for unknown fields."""

    path: str
    value: Any
    blames: str
    says: str

    def on(self, manifest: dict[str, Any]) -> dict[str, Any]:
        edited = deepcopy(manifest)
        *way, last = [int(step) if step.isdigit() else step for step in self.path.split(".")]
        node: Any = edited
        for step in way:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        if self.value is GONE:
            del node[last]
        else:
            node[last] = self.value
        return edited


def _edit(path: str, value: Any, blames: str, says: str) -> Edit:
    return Edit(path=path, value=value, blames=blames, says=says)


def _tree(steps: int, top_k: int, tokens: int) -> dict[str, int]:
    return {"numSteps": steps, "topK": top_k, "numDraftTokens": tokens}


NARROW = "spec.pools.1.candidates.1"
CODE = {"name": "code", "source": "builtin://code"}
MANY = [{"name": f"c{i}", "tree": _tree(i + 1, 1, i + 2)} for i in range(12)]

EDITS = (
    # Trees.
    _edit(f"{NARROW}.tree", _tree(5, 1, 8), "tree.numDraftTokens", "numSteps + 1 = 6 where topK is 1 (a chain); got 8"),
    _edit(f"{NARROW}.tree", _tree(2, 2, 8), "tree.numDraftTokens", "topK * topK = 7; got 8"),
    _edit(f"{NARROW}.tree", _tree(3, 4, 1), "tree.numDraftTokens", "greater than or equal to 2"),
    _edit(f"{NARROW}.tree", _tree(0, 4, 8), "tree.numSteps", "greater than or equal to 1"),
    _edit(f"{NARROW}.tree", {"numSteps": 3, "topK": 4}, "tree.numDraftTokens", ""),
    _edit(f"{NARROW}.tree", GONE, "spec.pools", "tree must be set"),
    # Drafts.
    _edit("spec.draft", GONE, "draft", "draft must be set"),
    _edit("spec.draft.source", GONE, "spec.draft.source", "must name a draft head for EAGLE3"),
    _edit("spec.draft.algorithm", "NGRAM", "spec.draft.source", "must be left out for NGRAM"),
    _edit("spec.draft.algorithm", "MEDUSA", "spec.draft.algorithm", "EAGLE3"),
    _edit(f"{NARROW}.draft", {"algorithm": "EAGLE"}, "candidates[1].draft.source", "must name a draft head for EAGLE"),
    # Names.
    _edit("spec.pools.1.name", "low-latency", "spec.pools[1].name", "no '-'"),
    _edit("spec.pools.1.name", "latency", "spec.pools", ""),
    _edit(f"{NARROW}.name", "wide", "spec.pools[1].candidates", ""),
    _edit(f"{NARROW}.name", "baseline", "spec.pools[1].candidates[1].name", "must not be 'baseline'"),
    _edit("metadata.name", "9lives", "metadata.name", "a letter first"),
    _edit("metadata.name", "dotted.name", "metadata.name", "a letter first"),
    _edit("metadata.name", "x" * 64, "metadata.name", "63"),
    _edit("spec.target.servedName", "a:b", "spec.target.servedName", "without ':'"),
    # Sources.
    _edit("spec.target.source", "Qwen/Qwen3-Coder-Next", "spec.target.source", "hf://OWNER/NAME or pvc://CLAIM/PATH"),
    _edit("spec.target.source", "pvc://claim/../up", "spec.target.source", "pvc://CLAIM/PATH"),
    _edit("spec.target.revision", "-x", "spec.target.revision", "a branch, tag or commit"),
    _edit(
        "spec.benchmark.datasets", [{**CODE, "source": "http://x"}], "benchmark.datasets[0].source", "builtin://code"
    ),
    # Cache.
    _edit("spec.cache.hostPath", "/models", "spec.cache", "exactly one of claim, existingClaim and hostPath"),
    _edit("spec.cache", {}, "spec.cache", "exactly one of claim, existingClaim and hostPath"),
    _edit("spec.cache", {"hostPath": "models"}, "spec.cache.hostPath", "an absolute path"),
    _edit("spec.cache.claim.size", "400GB", "spec.cache.claim.size", "such as 400Gi"),
    # Accelerator and engine.
    _edit("spec.accelerator.count", 0, "spec.accelerator.count", "greater than or equal to 1"),
    _edit("spec.accelerator.count", 2**63, "spec.accelerator.count", "64"),
    _edit("spec.accelerator.tensorParallelSize", 8, "tensorParallelSize", "at most count = 4; got 8"),
    _edit("spec.engine.name", "sglang", "spec.engine.name", "SGLangJAX"),
    _edit("spec.engine.version", "latest", "spec.engine.version", "such as '0.5.23'"),
    _edit("spec.engine.version", 0.5, "spec.engine.version", "string"),
    _edit("spec.engine.args", "--attention-backend=triton", "spec.engine.args", ""),
    _edit("spec.engine.args", ["x" * 1_000_000], "spec.engine.args[0]", "2048"),
    _edit("spec.engine.env", [{"name": "A"}, {"name": "A"}], "spec.engine.env", ""),
    # Benchmark and gate.
    _edit("spec.gate.minimumImprovement", 0.05, "spec.gate.minimumImprovement", "string"),
    _edit("spec.gate.minimumImprovement", "5%", "spec.gate.minimumImprovement", "decimal string"),
    _edit("spec.gate.confidence", "1.0", "spec.gate.confidence", "below '1'"),
    _edit("spec.gate.varianceFloor", "0.0", "spec.gate.varianceFloor", "above 0"),
    _edit("spec.gate.limits", [{"metric": "p99", "maximumIncrease": "0.2"}], "limits[0].metric", "p95TTFT"),
    _edit("spec.benchmark.decideAfterRounds", [5, 3], "spec.benchmark.decideAfterRounds", "must rise"),
    _edit("spec.benchmark.decideAfterRounds", [3, 3], "spec.benchmark.decideAfterRounds", ""),
    _edit("spec.benchmark.decideAfterRounds", [1], "decideAfterRounds[0]", "greater than or equal to 2"),
    _edit("spec.pools.0.datasets", ["math"], "spec.pools", "code, swe, terminal, chat"),
    _edit("spec.pools.0.concurrency", [], "spec.pools[0].concurrency", ""),
    _edit("spec.pools.0.candidates", MANY, "spec.pools", "at most 48"),
    _edit("spec.promotion.progressDeadline", "PT30M", "spec.promotion.progressDeadline", "such as 30m or 1h30m"),
    _edit("spec.promotion.progressDeadline", "0s", "spec.promotion.progressDeadline", "above zero"),
    _edit("spec.promotion.mode", "Never", "spec.promotion.mode", "Manual"),
    # Shapes.
    _edit("spec.pools", {"latency": {}}, "spec.pools", ""),
    _edit("spec.pools", [], "spec.pools", ""),
    _edit("spec.engine.image", GONE, "spec.engine.image", ""),
    _edit("spec.target.servedname", "x", "spec.target.servedname", ""),
    _edit("spec", GONE, "spec", ""),
)

RUN_EDITS = (
    _edit("spec.arms.0.name", "plain", "spec.arms", "baseline"),
    _edit("spec.arms.1.draft", GONE, "spec.arms[1].draft", "every arm but the baseline"),
    _edit("spec.arms.1.tree", _tree(5, 1, 8), "spec.arms[1].tree.numDraftTokens", "numSteps + 1 = 6"),
    _edit("spec.workloads.0.requests", 95, "spec.workloads", "three times the concurrency"),
    _edit("spec.workloads.1.name", "code", "spec.workloads", ""),
    _edit("spec.cache.hostPath", "/models", "spec.cache", "exactly one of existingClaim and hostPath"),
    _edit("spec.gate.decideAfterRounds", [8, 3], "spec.gate.decideAfterRounds", "must rise"),
    _edit("spec.target.commit", "main", "spec.target.commit", "hash of a commit"),
    _edit("spec.trigger.reason", "Cron", "spec.trigger.reason", "Person"),
)
