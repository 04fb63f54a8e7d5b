"""The table of wrong resources: each is refused at the earliest place that can know, with its field and the way out.

Rows of stage preflight are run where the models' files are (tests/unit/preflight), all others in
tests/api/test_refusals.py. A row is: name, changes to a good resource, path, words of the message.
"""

from typing import Any

from tests.wrong.edits import GONE, RUN, Change, Row, Stage
from tests.wrong.preflight import PREFLIGHT

TRITON = "--attention-backend=triton"
OLD: tuple[Change, ...] = (
    ("spec.engine.version", "0.5.6"),
    ("spec.engine.args", [TRITON, "--mem-fraction-static=0.85"]),
)
FIRST, SECOND = "spec.pools.0.candidates.0", "spec.pools.1.candidates.1"
"""wide of the pool latency, narrow of the pool throughput."""
TPU, VLLM = "qwen3-8b-tpu", "qwen3-coder-30b-vllm"


def tree(steps: int, top_k: int, tokens: int) -> dict[str, int]:
    return {"numSteps": steps, "topK": top_k, "numDraftTokens": tokens}


def falling(*depths: tuple[int, int]) -> list[dict[str, int]]:
    return [{"fromBatchSize": size, "numSteps": steps} for size, steps in depths]


FIRST_OF_VLLM = "spec.pools[0].candidates[0]"
CODE = {"name": "code", "source": "builtin://code"}
HUB = "hf://datasets/paceline-test/prompts"
MANY = [{"name": f"c{i}", "tree": tree(i + 1, 1, i + 2)} for i in range(12)]
NGRAM: Change = (f"{SECOND}.draft", {"algorithm": "NGRAM"})
WIDE = {"name": "wide", "tree": tree(3, 4, 8)}
SEARCH = {"numSteps": {"min": 1, "max": 7}, "topK": {"min": 1, "max": 8}, "numDraftTokens": {"min": 2, "max": 32}}
KEY = {"name": "keys", "key": "admin"}


def server(**fields: Any) -> Change:
    """A pod template that says this of the engine's container."""
    return "spec.engine.podTemplate", {"spec": {"containers": [{"name": "server", **fields}]}}


Told = tuple[str, tuple[Change, ...], str, str]


def one(name: str, path: str, value: Any, blames: str, says: str) -> Told:
    return name, ((path, value),), blames, says


SCHEMA: tuple[Told, ...] = (
    one("a typo in a field's name", "spec.target.servedname", "x", "spec.target.servedname", ""),
    one("a typo below a list", f"{SECOND}.tre", {}, "spec.pools[1].candidates[1].tre", ""),
    one("a list where a map belongs", "spec.target", ["hf://a/b"], "spec.target", ""),
    one("a map where a list belongs", "spec.pools", {"latency": {}}, "spec.pools", ""),
    one("a string where a list belongs", "spec.engine.args", "--attention-backend=triton", "spec.engine.args", ""),
    one("no spec", "spec", GONE, "spec", ""),
    one("no image", "spec.engine.image", GONE, "spec.engine.image", ""),
    one("no pools", "spec.pools", [], "spec.pools", ""),
    one("no candidates", "spec.pools.1.candidates", [], "spec.pools[1].candidates", ""),
    one("no concurrency", "spec.pools.0.concurrency", [], "spec.pools[0].concurrency", ""),
    one("one concurrency twice", "spec.pools.0.concurrency", [1, 1], "spec.pools[0].concurrency", ""),
    one("count: 0", "spec.accelerator.count", 0, "spec.accelerator.count", "greater than or equal to 1"),
    one("a negative number of replicas", "spec.pools.0.replicas", -1, "spec.pools[0].replicas", "or equal to 0"),
    one("a number over 64 bits", "spec.accelerator.count", 2**63, "spec.accelerator.count", "64"),
    one("a number over 32 bits", "spec.pools.0.replicas", 2**31, "spec.pools[0].replicas", "1000"),
    one("half an accelerator", "spec.accelerator.count", 0.5, "spec.accelerator.count", "integer"),
    one("a number in quotes", "spec.accelerator.count", "4", "spec.accelerator.count", "integer"),
    one("a version without quotes", "spec.engine.version", 0.5, "spec.engine.version", "string"),
    one("a fraction without quotes", "spec.gate.minimumImprovement", 0.05, "spec.gate.minimumImprovement", "string"),
    one("a megabyte in one argument", "spec.engine.args", ["x" * 1_000_000], "spec.engine.args[0]", "2048"),
    one("a megabyte of arguments", "spec.engine.args", ["--x=" + "y" * 1000] * 1000, "spec.engine.args", "64"),
    one("an empty argument", "spec.engine.args", [""], "spec.engine.args[0]", ""),
    one("an engine in lower case", "spec.engine.name", "sglang", "spec.engine.name", "SGLangJAX"),
    one("a mode that is none", "spec.promotion.mode", "Never", "spec.promotion.mode", "Manual"),
    one("a metric that is none", "spec.gate.limits", [{"metric": "p99", "maximumIncrease": "0.2"}],
        "limits[0].metric", "p95TTFT"),
    one("a capacity that may rise", "spec.gate.limits", [{"metric": "kvTokens", "maximumIncrease": "0.2"}],
        "limits[0].", "maximumDecrease"),
    one("retractions as a fraction", "spec.gate.limits", [{"metric": "retractions", "maximumIncrease": "0.2"}],
        "limits[0].", "maximum"),
    one("a latency without a bound", "spec.gate.limits", [{"metric": "p95TTFT"}], "limits[0].", "maximumIncrease"),
    one("a bare Off, which YAML reads as false", "spec.guard", {"action": False}, "spec.guard.action", ""),
    one("two pools of one name", "spec.pools.1.name", "latency", "spec.pools", ""),
    one("two candidates of one name", f"{SECOND}.name", "wide", "spec.pools[1].candidates", ""),
    one("a variable twice", "spec.engine.env", [{"name": "A"}, {"name": "A"}], "spec.engine.env", ""),
    one("a tree without tokens", f"{SECOND}.tree", {"numSteps": 3, "topK": 4}, "tree.numDraftTokens", ""),
    one("a tree of the root alone", f"{SECOND}.tree", tree(3, 4, 1),
        "tree.numDraftTokens", "greater than or equal to 2"),
    one("a tree without depth", f"{SECOND}.tree", tree(0, 4, 8), "tree.numSteps", "greater than or equal to 1"),
    one("one look at the gate", "spec.benchmark.decideAfterRounds", [1], "decideAfterRounds[0]", "or equal to 2"),
    one("a look twice", "spec.benchmark.decideAfterRounds", [3, 3], "spec.benchmark.decideAfterRounds", ""),
    one("outputs of no prompt", "spec.benchmark.parity", {"samples": 0}, "spec.benchmark.parity.samples", "equal to 1"),
    one("outputs of more prompts than fit", "spec.benchmark.parity", {"samples": 33},
        "spec.benchmark.parity.samples", "32"),
    one("outputs of prompts that nobody counted", "spec.benchmark.parity", {}, "spec.benchmark.parity.samples", ""),
    one("a name of 64 characters", "metadata.name", "x" * 64, "metadata.name", "63"),
)  # fmt: skip

CEL: tuple[Told, ...] = (
    # Trees.
    one("a chain with more tokens than steps", f"{SECOND}.tree", tree(5, 1, 8),
        "tree.numDraftTokens", "numSteps + 1 = 6 where topK is 1 (a chain); got 8"),
    one("a tree with more tokens than places", f"{SECOND}.tree", tree(2, 2, 8),
        "tree.numDraftTokens", "topK = 7; got 8"),
    one("no shape", f"{SECOND}.tree", GONE, "spec.pools[1].candidates[1]", "exactly one of tree, blockSize, ngram"),
    one("two shapes", f"{SECOND}.ngram", {}, "spec.pools[1].candidates[1]", "exactly one of tree, blockSize, ngram"),
    one("a tree for DFLASH", "spec.draft.algorithm", "DFLASH", "spec.pools", "blockSize"),
    ("a tree for NGRAM", (NGRAM,), "spec.pools", "ngram"),
    ("a depth that adapts for STANDALONE",
     (("spec.draft.algorithm", "STANDALONE"), (f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {})),
     "spec.pools", "EAGLE, EAGLE3, NEXTN, MTP"),
    ("a depth that adapts for NGRAM", (NGRAM, (f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {})),
     "spec.pools", "ngram"),
    ("a schedule for SGLang", ((f"{SECOND}.tree", GONE), (f"{SECOND}.schedule", falling((1, 3), (9, 0)))),
     "spec.pools", "--speculative-adaptive-config"),
    ("an algorithm without a word and without its name",
     ((f"{SECOND}.draft", {"algorithm": "Custom"}), (f"{SECOND}.tree", GONE), (f"{SECOND}.custom", {})),
     "spec.pools[1].candidates[1].draft.name", "name must be set for Custom, and for it alone"),
    one("a name for an algorithm that has a word", "spec.draft.name", "UNO", "spec.draft.name", "name must be set for"),
    ("an algorithm that is known, by another name",
     ((f"{SECOND}.draft", {"algorithm": "Custom", "name": "eagle3"}), (f"{SECOND}.tree", GONE),
      (f"{SECOND}.custom", {})),
     "spec.pools[1].candidates[1].draft.name", "there is no word for"),
    ("a tree for an algorithm that no rule knows", ((f"{SECOND}.draft", {"algorithm": "Custom", "name": "UNO"}),),
     "spec.pools", "custom"),
    ("flags of its own for EAGLE3", ((f"{SECOND}.tree", GONE), (f"{SECOND}.custom", {})),
     "spec.pools", "custom"),
    ("a match that is longer than the longest",
     (NGRAM, (f"{SECOND}.tree", GONE), (f"{SECOND}.ngram", {"minMatch": 5, "maxMatch": 3})),
     "spec.pools[1].candidates[1].ngram.minMatch", "at most maxMatch = 3; got 5"),
    ("two candidates that are the same", (("spec.pools.1.candidates", [WIDE, {**WIDE, "name": "other"}]),),
     "spec.pools[1].candidates", "draft, shape and arguments of two candidates are equal"),
    # Drafts.
    one("no draft", "spec.draft", GONE, "draft", "draft must be set"),
    one("a head that is not named", "spec.draft.source", GONE,
        "spec.draft.source", "must name a draft head for EAGLE3"),
    one("a draft for NGRAM", "spec.draft.algorithm", "NGRAM", "spec.draft.source", "must be left out for NGRAM"),
    one("Medusa", "spec.draft.algorithm", "MEDUSA", "spec.draft.algorithm", "the nearest are EAGLE3"),
    one("Lookahead", "spec.draft.algorithm", "LOOKAHEAD", "spec.draft.algorithm", "NGRAM (no head)"),
    one("an algorithm in lower case", "spec.draft.algorithm", "eagle3", "spec.draft.algorithm", "one of EAGLE, EAGLE3"),
    one("a head of its own that is not named", f"{SECOND}.draft", {"algorithm": "EAGLE"},
        "candidates[1].draft.source", "must name a draft head for EAGLE"),
    # Names.
    one("a pool with a dash", "spec.pools.1.name", "low-latency", "spec.pools[1].name", "no '-'"),
    one("a candidate called baseline", f"{SECOND}.name", "baseline",
        "spec.pools[1].candidates[1].name", "must not be 'baseline'"),
    one("a candidate with a unicode name", f"{SECOND}.name", "schnäll", "candidates[1].name", "lower-case letters"),
    one("a pool with a unicode name", "spec.pools.1.name", "延迟", "spec.pools[1].name", "lower-case letters"),
    one("a name that begins with a digit", "metadata.name", "9lives", "metadata.name", "a letter first"),
    one("a name with a dot", "metadata.name", "dotted.name", "metadata.name", "a letter first"),
    one("a served name with a colon", "spec.target.servedName", "a:b", "spec.target.servedName", "without ':'"),
    # Sources.
    one("a source without a scheme", "spec.target.source", "Qwen/Qwen3-Coder-Next",
        "spec.target.source", "hf://OWNER/NAME or pvc://CLAIM/PATH"),
    one("a path that climbs", "spec.target.source", "pvc://claim/../up", "spec.target.source", "pvc://CLAIM/PATH"),
    one("a model on another claim", "spec.target.source", "pvc://other/model", "spec", "the cache's own claim"),
    one("a head on another claim", "spec.draft.source", "pvc://other/head", "spec", "the cache's own claim"),
    ("a revision of what lies on a claim",
     (("spec.target.source", "pvc://models/qwen"), ("spec.target.revision", "v2")),
     "spec.target.revision", "must be left out for pvc://"),
    one("a revision that is an option", "spec.target.revision", "-x",
        "spec.target.revision", "a branch, tag or commit"),
    one("a revision within a source", "spec.benchmark.datasets", [{**CODE, "source": f"{HUB}/code.jsonl@v1"}],
        "spec.benchmark.datasets[0].source", "without @: branch, tag and commit have fields of their own"),
    one("a dataset by http", "spec.benchmark.datasets", [{**CODE, "source": "http://x"}],
        "benchmark.datasets[0].source", "builtin://code"),
    # Cache.
    one("two caches", "spec.cache.hostPath", "/models",
        "spec.cache", "exactly one of claim, existingClaim and hostPath"),
    one("no cache", "spec.cache", {}, "spec.cache", "exactly one of claim, existingClaim and hostPath"),
    one("a relative path", "spec.cache", {"hostPath": "models"}, "spec.cache.hostPath", "an absolute path"),
    one("a host path that climbs", "spec.cache", {"hostPath": "/a/../b"}, "spec.cache.hostPath", "without '..'"),
    one("the whole disk", "spec.cache", {"hostPath": "/"}, "spec.cache.hostPath", "an absolute path"),
    one("a size in GB", "spec.cache.claim.size", "400GB", "spec.cache.claim.size", "such as 400Gi"),
    # Engine and accelerator.
    one("more parallel than accelerators", "spec.accelerator.tensorParallelSize", 8,
        "tensorParallelSize", "at most count x nodes = 4; got 8"),
    one("a version that is a word", "spec.engine.version", "latest", "spec.engine.version", "such as '0.5.23'"),
    one("a variable with two values", "spec.engine.env",
        [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "spec.engine.env[0].valueFrom", "must be left out where value is set"),
    one("GPUs served by SGLang as TPUs", "spec.accelerator.resourceName", "google.com/tpu",
        "spec.accelerator", "resourceName must be google.com/tpu for SGLangJAX"),
    # Benchmark and gate.
    one("a near tie in percent", "spec.benchmark.parity", {"samples": 8, "nearTie": "10%"},
        "spec.benchmark.parity.nearTie", "(nats)"),
    one("a percentage", "spec.gate.minimumImprovement", "5%", "spec.gate.minimumImprovement", "decimal string"),
    one("certainty", "spec.gate.confidence", "1.0", "spec.gate.confidence", "below '1'"),
    one("no variance", "spec.gate.varianceFloor", "0.0", "spec.gate.varianceFloor", "above 0"),
    one("looks that fall", "spec.benchmark.decideAfterRounds", [5, 3], "spec.benchmark.decideAfterRounds", "must rise"),
    one("a dataset that is none", "spec.pools.0.datasets", ["math"], "spec.pools", "code, swe, terminal, chat"),
    one("more points than a message holds", "spec.pools.0.candidates", MANY, "spec.pools", "at most 48"),
    ("more rounds of points than a status holds",
     (("spec.benchmark.decideAfterRounds", [3, 50]), ("spec.pools.1.concurrency", [16, 32])),
     "spec.benchmark.decideAfterRounds", "must be at most 480 in every pool, what a run's status can hold"),
    one("a duration of another kind", "spec.promotion.progressDeadline", "PT30M",
        "spec.promotion.progressDeadline", "such as 30m or 1h30m"),
    one("no time at all", "spec.promotion.progressDeadline", "0s", "spec.promotion.progressDeadline", "above zero"),
    one("a label of ours on benchmarks", "spec.benchmark.podLabels", {"paceline.dev/pool": "x"},
        "spec.benchmark.podLabels", "are Paceline's"),
    one("a label that is none", "spec.benchmark.podLabels", {"team": "a b"},
        "spec.benchmark.podLabels", "label's value"),
    one("eight seconds of a rate", "spec.benchmark.datasets", [{**CODE, "requests": 64, "requestRate": "8"}],
        "spec.benchmark.datasets[0].requests", "must arrive for at least 20 seconds at requestRate"),
    one("a rate that no number of requests lasts for", "spec.benchmark.datasets", [{**CODE, "requestRate": "5001"}],
        "spec.benchmark.datasets[0].requests", "must arrive for at least 20 seconds at requestRate"),
    one("half an hour of another kind", "spec.benchmark.timeouts", {"start": "0.5h"},
        "spec.benchmark.timeouts.start", "such as 30m or 1h30m"),
    # Not yet.
    ("a search", (("spec.pools.1.candidates", GONE), ("spec.pools.1.search", SEARCH)),
     "spec.pools[1].search", "not in this release: name candidates"),
    one("neither candidates nor a search", "spec.pools.1.candidates", GONE,
        "spec.pools[1]", "exactly one of candidates"),
    one("a borrowed replica", "spec.benchmark.capacityPolicy", "Borrow",
        "spec.benchmark.capacityPolicy", "is not in this release: leave it out"),
    one("a budget of nothing", "spec.benchmark.budget", {"gpuHours": "0"},
        "spec.benchmark.budget.gpuHours", "decimal string above 0"),
    one("a dataset of the hub without a file", "spec.benchmark.datasets", [{**CODE, "source": HUB}],
        "spec.benchmark.datasets[0].source", "must name one .json or .jsonl file"),
    one("a table of the hub", "spec.benchmark.datasets", [{**CODE, "source": f"{HUB}/data/train.parquet"}],
        "spec.benchmark.datasets[0].source", "must name one .json or .jsonl file"),
    one("a packed file of the hub", "spec.benchmark.datasets", [{**CODE, "source": f"{HUB}/code.jsonl.gz"}],
        "spec.benchmark.datasets[0].source", "must name one .json or .jsonl file"),
    one("a revision of a built-in set", "spec.benchmark.datasets", [{**CODE, "revision": "v1"}],
        "spec.benchmark.datasets[0].revision", "must be left out where source is not of hf://datasets/"),
    one("a guard", "spec.guard", {"action": "Fallback"}, "spec.guard.action", 'is not in this release: write "Off"'),
)  # fmt: skip

OF_A_TPU: tuple[Told, ...] = (
    one("a tree on TPU", f"{FIRST}.tree", tree(3, 4, 8), "spec.pools", "topK must be 1"),
    one("one step on TPU", f"{FIRST}.tree", tree(1, 1, 2), "spec.pools", "numSteps must be at least 2"),
    ("n-grams on TPU",
     (("spec.draft", {"algorithm": "NGRAM"}), (f"{FIRST}.tree", GONE), (f"{FIRST}.ngram", {})),
     "spec", "EAGLE, EAGLE3, NEXTN, DFLASH"),
    one("MTP on TPU, where it is called NEXTN", "spec.draft", {"algorithm": "MTP"}, "spec", "NEXTN"),
    ("a depth that adapts on TPU", ((f"{FIRST}.tree", GONE), (f"{FIRST}.adaptive", {})),
        "spec.pools", "name chains of several depths"),
    one("GPUs for sglang-jax", "spec.accelerator.resourceName", "nvidia.com/gpu",
        "spec.accelerator", "resourceName must be google.com/tpu for SGLangJAX"),
    one("TPUs by the label of GPUs", "spec.accelerator.productLabel", "nvidia.com/gpu.product",
        "spec.accelerator.productLabel", "cloud.google.com/gke-tpu-accelerator"),
    one("TPUs without a topology", "spec.accelerator.topology", GONE, "spec.accelerator", "topology must be set"),
    one("an admin key for sglang-jax", "spec.engine.adminKeySecretRef", KEY,
        "spec.engine.adminKeySecretRef", "must be left out"),
)  # fmt: skip

OF_VLLM: tuple[Told, ...] = (
    one("a tree for vLLM", f"{FIRST}.tree", tree(3, 4, 8), "spec.pools", "topK must be 1"),
    ("a depth that adapts for n-grams",
     (("spec.draft", {"algorithm": "NGRAM"}), ("spec.pools", [
         {"name": "single", "concurrency": [1], "candidates": [{"name": "ngram", "adaptive": {}}]}])),
     "spec.pools", "ngram"),
    ("a schedule that begins at two", ((f"{FIRST}.tree", GONE), (f"{FIRST}.schedule", falling((2, 4), (9, 0)))),
     f"{FIRST_OF_VLLM}.schedule", "must begin with fromBatchSize 1"),
    ("a schedule that falls back", ((f"{FIRST}.tree", GONE), (f"{FIRST}.schedule", falling((1, 4), (9, 0), (5, 2)))),
     f"{FIRST_OF_VLLM}.schedule", "rise from there"),
    ("a schedule that never speculates", ((f"{FIRST}.tree", GONE), (f"{FIRST}.schedule", falling((1, 0), (9, 0)))),
     f"{FIRST_OF_VLLM}.schedule", "it is the baseline"),
    ("breadth for vLLM",
     (("spec.draft", {"algorithm": "NGRAM"}), ("spec.pools", [
         {"name": "single", "concurrency": [1], "candidates": [{"name": "ngram", "ngram": {"breadth": 2}}]}])),
     "spec.pools", "breadth must be left out"),
    one("an admin key for vLLM", "spec.engine.adminKeySecretRef", KEY,
        "spec.engine.adminKeySecretRef", "must be left out"),
)  # fmt: skip

SWEEP: Change = ("spec.purpose", "Sweep")
NO_BAR: Change = ("spec.gate", {"decideAfterRounds": [5]})

OF_A_RUN: tuple[Told, ...] = (
    one("no baseline", "spec.arms.0.name", "plain", "spec.arms", "baseline"),
    one("an arm without a draft", "spec.arms.1.draft", GONE, "spec.arms[1].draft", "every arm but the baseline"),
    one("an arm without a shape", "spec.arms.1.tree", GONE, "spec.arms[1]", "exactly one of tree, blockSize, ngram"),
    one("a baseline with a tree", "spec.arms.0.tree", tree(5, 1, 6), "spec.arms[0]", "baseline"),
    one("an arm's chain with more tokens than steps", "spec.arms.1.tree", tree(5, 1, 8),
        "spec.arms[1].tree.numDraftTokens", "numSteps + 1 = 6"),
    one("an arm's tree for DFLASH", "spec.arms.1.draft.algorithm", "DFLASH", "spec.arms", "blockSize"),
    one("fewer requests than five a user", "spec.workloads.0.requests", 159,
        "spec.workloads", "five times the concurrency"),
    one("a temperature beyond two", "spec.workloads.0.temperature", "2.1",
        "spec.workloads[0].temperature", "from '0' to '2'"),
    one("a run's two caches", "spec.cache.hostPath", "/models",
        "spec.cache", "exactly one of existingClaim and hostPath"),
    one("a run's looks that fall", "spec.gate.decideAfterRounds", [8, 3], "spec.gate.decideAfterRounds", "must rise"),
    ("more rounds of points than a run's status holds",
     (("spec.gate.decideAfterRounds", [3, 50]), ("spec.workloads", [
         {"name": "code", "source": "builtin://code", "concurrency": 2**i} for i in range(5)])),
     "spec.gate.decideAfterRounds", "must be at most 480, what a run's status can hold"),
    one("a pool that is smaller than its workloads", "spec.largestConcurrency", 16,
        "spec.largestConcurrency", "at least the largest concurrency"),
    one("a branch for a commit", "spec.target.commit", "main", "spec.target.commit", "hash of a commit"),
    one("a search by hand", "spec.purpose", "Search", "spec.purpose", "is not in this release: write Gate or Sweep"),
    ("a sweep of one concurrency", (SWEEP, NO_BAR), "spec.workloads", "at least two concurrencies"),
    ("a sweep of a dataset here and another there",
     (SWEEP, NO_BAR, ("spec.workloads", [
         {"name": "code", "source": "builtin://code", "concurrency": 1},
         {"name": "chat", "source": "builtin://chat", "concurrency": 32}])),
     "spec.workloads", "every dataset at every concurrency"),
    ("a sweep at a rate",
     (SWEEP, NO_BAR, ("spec.workloads", [
         {"name": "code", "source": "builtin://code", "concurrency": 1},
         {"name": "chat", "source": "builtin://chat", "requestRate": "8", "concurrency": 32}])),
     "spec.workloads", "requestRate must be left out for a Sweep"),
    one("a sweep with a bar", "spec.purpose", "Sweep", "spec.gate", "must be left out for a Sweep"),
    one("one dataset at a rate and at two concurrencies", "spec.workloads", [
            {"name": "code", "source": "builtin://code", "requestRate": "8", "concurrency": 1},
            {"name": "code", "source": "builtin://code", "requestRate": "8", "concurrency": 8}],
        "spec.workloads", "one workload alone where requestRate is set"),
    ("a sweep that compares outputs", (SWEEP, NO_BAR, ("spec.parity", {"samples": 8}), ("spec.workloads", [
        {"name": "code", "source": "builtin://code", "concurrency": 1},
        {"name": "code", "source": "builtin://code", "concurrency": 32}])),
     "spec.parity", "must be left out for a Sweep"),
    ("outputs of more arms than fit", (("spec.parity", {"samples": 8}), ("spec.workloads", [
        {"name": "code", "source": "builtin://code", "concurrency": 1}]),
        ("spec.arms", [{"name": "baseline"}, *({"name": f"c{i}", "tree": tree(i + 1, 1, i + 2),
            "draft": {"algorithm": "NEXTN"}} for i in range(16))])),
     "spec.arms", "at most 16 where parity is set"),
    one("eight seconds of a run's rate", "spec.workloads.0", {
            "name": "code", "source": "builtin://code", "requests": 96, "requestRate": "12", "concurrency": 32},
        "spec.workloads[0].requests", "must arrive for at least 20 seconds at requestRate"),
    one("no time at all for a run's workload", "spec.timeouts", {"workload": "0s"},
        "spec.timeouts.workload", "above zero"),
    one("a run's budget of nothing", "spec.budget", {"gpuHours": "0"},
        "spec.budget.gpuHours", "decimal string above 0"),
    one("a commit of a built-in set", "spec.workloads.0.commit", "0" * 40,
        "spec.workloads[0].commit", "must be left out where source is not of hf://datasets/"),
    one("a run's model on another claim", "spec.target.source", "pvc://other/model", "spec", "the cache's own claim"),
)  # fmt: skip
OF_A_RUNS_SCHEMA: tuple[Told, ...] = (
    one("one workload twice", "spec.workloads.1.name", "code", "spec.workloads", ""),
    one("a trigger that is none", "spec.trigger.reason", "Cron", "spec.trigger.reason", "Person"),
)

VALIDATE: tuple[Told, ...] = (
    ("two candidates that are the same but for how their arguments are written",
     (("spec.pools.0.candidates", [
         {**WIDE, "args": ["--speculative-attention-mode", "decode"]},
         {**WIDE, "name": "other", "args": ["--speculative-attention-mode=decode"]}]),),
     "spec.pools[0].candidates[1]", "other is the same as wide"),
    ("two candidates that are the same but for the other name of MTP",
     (("spec.pools.0.candidates", [
         {"name": "a", "draft": {"algorithm": "MTP"}, "tree": tree(3, 1, 4)},
         {"name": "b", "draft": {"algorithm": "NEXTN"}, "tree": tree(3, 1, 4)}]),),
     "spec.pools[0].candidates[1]", "b is the same as a"),
    one("a source of a variable that is none", "spec.engine.env", [{"name": "A", "valueFrom": {"secretkeyref": {}}}],
        "spec.engine.env[0].valueFrom", "did you mean secretKeyRef?"),
    one("a label's key that is none", "spec.benchmark.podLabels", {"a b": "c"},
        "spec.benchmark.podLabels", "label key"),
    one("a pod template of 100 kB", "spec.engine.podTemplate", {"metadata": {"annotations": {"a": "x" * 100_000}}},
        "spec.engine.podTemplate", "at most 65536 bytes"),
    # Arguments: the engine's own tables.
    one("a port among the arguments", "spec.engine.args", [TRITON, "--port", "30000"],
        "spec.engine.args[1]", "--port"),
    one("speculation among the arguments", "spec.engine.args",
        [TRITON, "--speculative-algorithm=EAGLE"],
        "spec.engine.args[1]", "--speculative-algorithm"),
    one("a flag that is none", "spec.engine.args", [TRITON, "--mem-fraction-statik=0.8"],
        "spec.engine.args[1]", "--mem-fraction-static"),
    one("a flag twice", "spec.engine.args", [TRITON, "--attention-backend=fa3"],
        "spec.engine.args[1]", "--attention-backend"),
    one("a variable of the kubelet's", "spec.engine.args", [TRITON, "--dtype=$(TYPE)"],
        "spec.engine.args[1]", "$(VAR)"),
    one("arms that differ in more than speculation", f"{FIRST}.args", ["--attention-backend=fa3"],
        "spec.pools[0].candidates[0].args[0]", "--attention-backend"),
    one("a tree without an attention backend", "spec.engine.args", [], "spec.engine.args", "--attention-backend"),
    one("a flag in short", "spec.engine.args", [TRITON, "--mem-frac=0.8"], "spec.engine.args[1]", "write it in full"),
    one("a flag of an older release", "spec.engine.args", [TRITON, "--enable-ep-moe"],
        "spec.engine.args[1]", "--ep-size"),
    one("a value that is no number", "spec.engine.args", [TRITON, "--mem-fraction-static=lots"],
        "spec.engine.args[1]", "takes a number; got lots"),
    one("an API key in clear", "spec.engine.args", [TRITON, "--api-key=s3cret"],
        "spec.engine.args[1]", "spec.engine.apiKeySecretRef"),
    one("tokens that the target would not have written", "spec.engine.args",
        [TRITON, "--speculative-accept-threshold-single=0.9"], "spec.engine.args[1]", "remove it"),
    one("a weight cache beside a draft", "spec.engine.args", [TRITON, "--weight-cache-mode=daemon"],
        "spec.engine.args[1]", "does not go with EAGLE3"),
    # What makes numbers up, and limits below the load.
    one("acceptance that is made up", "spec.engine.env", [{"name": "SGLANG_SIMULATE_ACC_LEN", "value": "4"}],
        "spec.engine.env[0].name", "makes acceptance up: its speed is no server's, its text no model's; remove it"),
    ("acceptance that is made up in the pod template", (server(env=[{"name": "SGLANG_SIMULATE_ACC_METHOD"}]),),
     "spec.engine.podTemplate.spec.containers[0].env[0].name", "makes acceptance up"),
    one("a run of 4 that is called one of 32", "spec.engine.args", [TRITON, "--max-running-requests=4"],
        "spec.engine.args[1]", "@32: it would be measured with 4 at a time; write at least 32"),
    one("answers that end before their cap", "spec.engine.args", [TRITON, "--context-length=512"],
        "spec.engine.args[1]", "--context-length=512 is too short for"),
    one("a cache of fewer tokens than are asked for", "spec.engine.args", [TRITON, "--max-total-tokens=2048"],
        "spec.engine.args[1]", "--max-total-tokens=2048 is too few for"),
    # Trees and algorithms by engine and version.
    one("a table of tokens that EAGLE3 does not read", f"{FIRST}.args", ["--speculative-token-map=/models/hot.pt"],
        "spec.pools[0].candidates[0].args[0]", "is ignored by EAGLE3"),
    ("a chain that loses overlap scheduling and nobody said so",
     (*OLD, ("spec.engine.env", []), (f"{FIRST}.tree", tree(3, 1, 4)),
      ("spec.pools.1.candidates", [{"name": "chain", "tree": tree(3, 1, 4)}])),
     "spec.engine.env", "SGLANG_ENABLE_SPEC_V2"),
    ("a tree with a worker of chains",
     (*OLD, ("spec.engine.env", [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"}])),
     "spec.pools[0].candidates[0].tree.topK", "does not go with SGLANG_ENABLE_SPEC_V2=1"),
    one("a tree on a backend that drafts chains alone", "spec.engine.args", ["--attention-backend=trtllm_mha"],
        "spec.pools[0].candidates[0].tree.topK", "write 1 (a chain) or --attention-backend=flashinfer"),
    one("a tree on pages that are not verified",
        "spec.engine.args", ["--attention-backend=torch_native", "--page-size=16"],
        "spec.pools[0].candidates[0].tree.topK", "--page-size=1"),
    one("rejection sampling of a tree", f"{FIRST}.args", ["--speculative-use-rejection-sampling"],
        "spec.pools[0].candidates[0].args[0]", "verifies chains only"),
    one("memory that is sized by the algorithm", "spec.engine.version", "0.5.13",
        "spec.engine.args", "0.869 with EAGLE3, which wide has), and arms must be equal; add --mem-fraction-static"),
    ("DFLASH before SGLang had it",
     (*OLD, ("spec.draft.algorithm", "DFLASH"), ("spec.pools", [
         {"name": "a", "concurrency": [1], "candidates": [{"name": "block", "blockSize": 8}]}])),
     "spec.draft.algorithm", "SGLang 0.5.6 has no DFLASH"),
    ("a depth that adapts before SGLang could",
     (*OLD, (f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {})),
     "spec.pools[1].candidates[1].adaptive", "0.5.11 has it"),
    ("a depth that is none of the adaptive ones",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {"numSteps": 9})),
     "spec.pools[1].candidates[1].adaptive.numSteps", "take 1, 3, 5, 7"),
    ("lossy verification of an algorithm that no rule knows",
     ((f"{SECOND}.draft", {"algorithm": "Custom", "name": "UNO"}), (f"{SECOND}.tree", GONE),
      (f"{SECOND}.custom", {"args": ["--speculative-accept-threshold-single=0.9"]})),
     "spec.pools[1].candidates[1].custom.args[0]", "remove it"),
    ("a match window that SGLang has no more",
     (NGRAM, (f"{SECOND}.tree", GONE), (f"{SECOND}.ngram", {"minMatch": 2})),
     "spec.pools[1].candidates[1].ngram.minMatch", "remove minMatch"),
    # Pod templates.
    ("an image in the pod template", (server(image="x"),),
     "spec.engine.podTemplate.spec.containers[0].image", "spec.engine.image"),
    ("a command in the pod template", (server(command=["sh"]),),
     "spec.engine.podTemplate.spec.containers[0].command", "spec.engine.args"),
    one("a label of ours in the pod template", "spec.engine.podTemplate",
        {"metadata": {"labels": {"paceline.dev/pool": "x"}}},
        "spec.engine.podTemplate.metadata.labels.paceline.dev/pool", "leave it out"),
    one("a typo in the pod template", "spec.engine.podTemplate", {"spec": {"nodeselector": {}}},
        "spec.engine.podTemplate.spec.nodeselector", "did you mean nodeSelector?"),
    one("another product in the pod template", "spec.engine.podTemplate",
        {"spec": {"nodeSelector": {"nvidia.com/gpu.product": "x"}}},
        "spec.engine.podTemplate.spec.nodeSelector.nvidia.com/gpu.product", "spec.accelerator.product"),
    # The command of the post that examples/qwen3-coder-30b-a3b.yaml is made of: all its arguments as they stand there.
    ("the post's command", (
        ("spec.target.source", "hf://Qwen/Qwen3-Coder-30B-A3B"),
        ("spec.draft", {"algorithm": "EAGLE", "source": "hf://Qwen/Qwen3-Coder-30B-A3B-EAGLE3"}),
        ("spec.engine.version", "0.4.5"),
        ("spec.engine.image", "lmsysorg/sglang:v0.4.5"),
        ("spec.engine.args", [
            "--speculative-algorithm", "EAGLE",
            "--speculative-draft-model-path", "Qwen/Qwen3-Coder-30B-A3B-EAGLE3",
            "--speculative-num-steps", "5",
            "--speculative-eagle-topk", "8",
            "--speculative-num-draft-tokens", "32",
            "--tp", "1",
            "--max-total-tokens", "65536",
            "--mem-fraction-static", "0.85",
            "--enable-torch-compile",
            "--port", "30000",
        ]),
        ("spec.accelerator", {"product": "NVIDIA-H100-80GB-HBM3", "count": 1}),
        ("spec.pools.0.candidates.0.tree", tree(5, 8, 32)),
     ), "spec.engine.args[0]", "--speculative-algorithm"),
)  # fmt: skip


VALIDATE_ON_TPU: tuple[Told, ...] = (
    one("acceptance that is made up on TPU", "spec.engine.env", [{"name": "SIMULATE_ACC_LEN", "value": "4"}],
        "spec.engine.env[0].name", "makes acceptance up"),
    one("a flag that sglang-jax has not", "spec.engine.args", ["--page-size=64", "--mem-fraction-statik=0.8"],
        "spec.engine.args[1]", "did you mean --mem-fraction-static?"),
    one("speculation on TPU with pages of one token", "spec.engine.args", ["--dtype=bfloat16"],
        "spec.engine.args", "write --page-size=64"),
)  # fmt: skip
VALIDATE_ON_VLLM: tuple[Told, ...] = (
    one("acceptance that is made up by vLLM", "spec.engine.args",
        ["--speculative-config.rejection_sample_method=synthetic"], "spec.engine.args[0]", "remove it"),
    one("fewer seats than requests on vLLM", "spec.engine.args", ["--max-num-seqs=4"],
        "spec.engine.args[0]", "write at least 8"),
    one("answers that end before their cap on vLLM", "spec.engine.args", ["--max-model-len=512"],
        "spec.engine.args[0]", "--max-model-len=512 is too short for"),
    one("grammars that take no draft back", "spec.engine.args",
        ["--structured-outputs-config.backend=lm-format-enforcer"], "spec.engine.args[0]", "does not go with drafts"),
    one("SGLang's flags for vLLM", "spec.engine.args", ["--mem-fraction-static=0.8"],
        "spec.engine.args[0]", "is no option of vLLM"),
    one("speculation among vLLM's arguments", "spec.engine.args", ['--speculative-config={"method": "eagle3"}'],
        "spec.engine.args[0]", "set by Paceline from the resource"),
    ("a depth that adapts beside LoRA", (
        (f"{FIRST}.tree", GONE), (f"{FIRST}.adaptive", {}), ("spec.engine.args", ["--enable-lora"])),
     f"{FIRST_OF_VLLM}.adaptive", "--enable-lora does not go with adaptive"),
    ("a schedule that vLLM would drop in silence", (
        (f"{FIRST}.tree", GONE), (f"{FIRST}.schedule", falling((1, 4), (9, 0))), ("spec.engine.args", ["-dp", "2"])),
     f"{FIRST_OF_VLLM}.schedule", "makes the depth static"),
    ("acceptance that is made up, of an algorithm that no rule knows", (
        ("spec.draft", {"algorithm": "Custom", "name": "suffix"}), ("spec.pools", [
            {"name": "single", "concurrency": [1], "candidates": [{"name": "suffix", "custom": {
                "args": ["--speculative-config.rejection_sample_method=synthetic"]}}]}])),
     f"{FIRST_OF_VLLM}.custom.args[0]", "remove it"),
    one("several nodes for vLLM", "spec.accelerator.nodes", 2, "spec.accelerator.nodes", "not VLLM"),
)  # fmt: skip


def _rows(stage: Stage, told: tuple[Told, ...], on: str = "qwen3-coder-next-upstream") -> tuple[Row, ...]:
    return tuple(
        Row(name=name, stage=stage, changes=changes, path=path, says=says, on=on) for name, changes, path, says in told
    )


ROWS = (
    *_rows(Stage.SCHEMA, SCHEMA),
    *_rows(Stage.SCHEMA, OF_A_RUNS_SCHEMA, RUN),
    *_rows(Stage.CEL, CEL),
    *_rows(Stage.CEL, OF_A_TPU, TPU),
    *_rows(Stage.CEL, OF_VLLM, VLLM),
    *_rows(Stage.CEL, OF_A_RUN, RUN),
    *_rows(Stage.VALIDATE, VALIDATE),
    *_rows(Stage.VALIDATE, VALIDATE_ON_TPU, TPU),
    *_rows(Stage.VALIDATE, VALIDATE_ON_VLLM, VLLM),
    *PREFLIGHT,
)


def of(*stages: Stage) -> list[Row]:
    return [row for row in ROWS if row.stage in stages]
