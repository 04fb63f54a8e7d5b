"""Rows of stage schema: types, bounds and names of fields. Run in tests/api/test_refusals.py."""

from tests.support.edits import GONE
from tests.wrong.rows_in_short import SECOND, Told, one, tree

LOAD = "spec.pools.0.load.0"
SCHEMA: tuple[Told, ...] = (
    one("a typo in a field's name", "spec.target.servedname", "x", "spec.target.servedname"),
    one("a typo below a list", f"{SECOND}.tre", {}, "spec.candidates[1].tre"),
    one("a list where a map belongs", "spec.target", ["hf://a/b"], "spec.target"),
    one("a map where a list belongs", "spec.pools", {"latency": {}}, "spec.pools"),
    one("a string where a list belongs", "spec.engine.args", "--attention-backend=triton", "spec.engine.args"),
    one("no spec", "spec", GONE, "spec"),
    one("no image", "spec.engine.image", GONE, "spec.engine.image"),
    one("no pools", "spec.pools", [], "spec.pools"),
    one("no candidates", "spec.candidates", [], "spec.candidates"),
    one("no concurrency", f"{LOAD}.concurrency", [], "spec.pools[0].load[0].concurrency"),
    one("one concurrency twice", f"{LOAD}.concurrency", [1, 1], "spec.pools[0].load[0].concurrency"),
    one("count: 0", "spec.accelerator.count", 0, "spec.accelerator.count"),
    one("a negative number of replicas", "spec.pools.0.replicas", -1, "spec.pools[0].replicas"),
    one("a number over 64 bits", "spec.accelerator.count", 2**63, "spec.accelerator.count"),
    one("a number over 32 bits", "spec.pools.0.replicas", 2**31, "spec.pools[0].replicas"),
    one("half an accelerator", "spec.accelerator.count", 0.5, "spec.accelerator.count"),
    one("a number in quotes", "spec.accelerator.count", "4", "spec.accelerator.count"),
    one("a version without quotes", "spec.engine.version", 0.5, "spec.engine.version"),
    one("a fraction without quotes", "spec.gate.minImprovement", 0.05, "spec.gate.minImprovement"),
    one("a megabyte in one argument", "spec.engine.args", ["x" * 1_000_000], "spec.engine.args[0]"),
    one("a megabyte of arguments", "spec.engine.args", ["--x=" + "y" * 1000] * 1000, "spec.engine.args"),
    one("an empty argument", "spec.engine.args", [""], "spec.engine.args[0]"),
    one("an engine in lower case", "spec.engine.type", "sglang", "spec.engine.type"),
    one("a mode that is none", "spec.promotion.mode", "Never", "spec.promotion.mode"),
    one("a metric that is none", "spec.gate.limits", [{"metric": "p99", "maxIncrease": "20%"}], "limits[0].metric"),
    one("a cache that may be hit more", "spec.gate.limits", [{"metric": "cacheHitRate", "maxIncrease": "5%"}],
        "limits[0]."),
    one("one turn", "spec.benchmark.datasets", [{"name": "a", "source": "configMap://a/b", "turns": 1}], "turns"),
    one("a capacity that may rise", "spec.gate.limits", [{"metric": "kvTokens", "maxIncrease": "20%"}], "limits[0]."),
    one("retractions as a fraction", "spec.gate.limits", [{"metric": "retractions", "maxIncrease": "20%"}],
        "limits[0]."),
    one("a latency without a bound", "spec.gate.limits", [{"metric": "p95TTFT"}], "limits[0]."),
    one("a bare off, which YAML reads as false", "spec.guard", {"action": False}, "spec.guard.action"),
    one("two pools of one name", "spec.pools.1.name", "latency", "spec.pools"),
    one("two candidates of one name", f"{SECOND}.name", "wide", "spec.candidates"),
    one("a variable twice", "spec.engine.env", [{"name": "A"}, {"name": "A"}], "spec.engine.env"),
    one("a source of a variable that is none", "spec.engine.env", [{"name": "A", "valueFrom": {"secretkeyref": {}}}],
        "spec.engine.env[0].valueFrom.secretkeyref"),
    one("a source of a variable in nested lists", "spec.engine.env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": [[["s"]]], "key": "k"}}}],
        "spec.engine.env[0].valueFrom.secretKeyRef.name"),
    one("a tree without tokens", f"{SECOND}.tree", {"numSteps": 3, "topK": 4}, "tree.numDraftTokens"),
    one("a tree of the root alone", f"{SECOND}.tree", tree(3, 4, 1), "tree.numDraftTokens"),
    one("a tree without depth", f"{SECOND}.tree", tree(0, 4, 8), "tree.numSteps"),
    one("one look at the gate", "spec.gate.decideAfterRounds", [1], "decideAfterRounds[0]"),
    one("a look twice", "spec.gate.decideAfterRounds", [3, 3], "spec.gate.decideAfterRounds"),
    one("outputs of no prompt", "spec.benchmark.parity", {"samples": 0}, "spec.benchmark.parity.samples"),
    one("outputs of more prompts than fit", "spec.benchmark.parity", {"samples": 33}, "spec.benchmark.parity.samples"),
    one("outputs of prompts that nobody counted", "spec.benchmark.parity", {}, "spec.benchmark.parity.samples"),
    one("a name of 64 characters", "metadata.name", "x" * 64, "metadata.name"),
)  # fmt: skip

OF_A_RUNS_SCHEMA: tuple[Told, ...] = (one("one workload twice", "spec.workloads.1.name", "code", "spec.workloads"),)

OF_A_PROFILES_SCHEMA: tuple[Told, ...] = (
    one("a lock of what is no field", "spec.locked", ["datasets", "budgets"], "spec.locked[1]"),
    one("a lock twice", "spec.locked", ["gate", "gate"], "spec.locked"),
    one("a profile that names a profile", "spec.benchmark.profileRef", {"name": "other"}, "spec.benchmark.profileRef"),
    one("a profile of what is served", "spec.pools", [], "spec.pools"),
)  # fmt: skip
