"""Rows of stage validate: what an engine of that version refuses, and what CEL cannot see. Run in
tests/api/test_refusals.py."""

from typing import Any

from tests.support.edits import GONE, Change
from tests.wrong.rows_in_short import BY_DEFAULT, FIRST, FIRST_OF_VLLM, NGRAM, SECOND, WIDE, Told, falling, one, tree

TRITON = "--attention-backend=triton"
OLD: tuple[Change, ...] = (
    ("spec.engine.version", "0.5.6"),
    ("spec.engine.args", [TRITON, "--mem-fraction-static=0.85"]),
)
UNO = {"algorithm": "Custom", "name": "UNO"}


def server(**fields: Any) -> Change:
    """A pod template that says this of the engine's container."""
    return "spec.engine.podTemplate", {"spec": {"containers": [{"name": "server", **fields}]}}


NIGHT = {"schedule": "0 22 * * *", "duration": "6h"}

VALIDATE: tuple[Told, ...] = (
    ("a search whose ranges hold no tree",
     (*BY_DEFAULT, ("spec.pools.1.search", {
         "numSteps": {"min": 5, "max": 5}, "topK": {"min": 1, "max": 1}, "numDraftTokens": {"min": 2, "max": 3}})),
     "spec.pools[1].search"),
    ("a search with chains that would lose what the baseline keeps",
     (*OLD, *BY_DEFAULT, ("spec.pools.1.search", {
         "numSteps": {"min": 1, "max": 7}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 16}})),
     "spec.engine.env"),
    one("an hour that no clock shows", "spec.benchmark.window", {**NIGHT, "schedule": "0 25 * * *"},
        "spec.benchmark.window.schedule"),
    one("a day that never comes", "spec.benchmark.window", {**NIGHT, "schedule": "0 0 30 2 *"},
        "spec.benchmark.window.schedule"),
    one("a zone of another planet", "spec.benchmark.window", {**NIGHT, "timeZone": "Mars/Base"},
        "spec.benchmark.window.timeZone"),
    ("two candidates that are the same but for how their arguments are written",
     (("spec.candidates", [
         {**WIDE, "args": ["--speculative-attention-mode", "decode"]},
         {**WIDE, "name": "other", "args": ["--speculative-attention-mode=decode"]}]),), "spec.candidates[1]"),
    ("two candidates that are the same but for the other name of MTP",
     (("spec.pools.0.candidates", GONE), ("spec.candidates", [
         {"name": "a", "draft": {"algorithm": "MTP"}, "tree": tree(3, 1, 4)},
         {"name": "b", "draft": {"algorithm": "NEXTN"}, "tree": tree(3, 1, 4)}])), "spec.candidates[1]"),
    ("two candidates of an algorithm without a word that are the same but for how its flags are written",
     (("spec.pools.0.candidates", GONE), ("spec.candidates", [
         {"name": "a", "draft": UNO, "custom": {"args": ["--uno-a=3", "--uno-b", "4"]}},
         {"name": "b", "draft": {**UNO, "name": "uno"}, "custom": {"args": ["--uno-b=4", "--uno-a", "3"]}}])),
     "spec.candidates[1]"),
    ("two candidates of it of which one has its flag where the other's own are",
     (("spec.pools.0.candidates", GONE), ("spec.candidates", [
         {"name": "a", "draft": UNO, "custom": {"args": ["--speculative-attention-mode=decode"]}},
         {"name": "b", "draft": UNO, "custom": {}, "args": ["--speculative-attention-mode", "decode"]}])),
     "spec.candidates[1]"),
    one("a limit that admits no request", "spec.engine.args", [TRITON, "--max-running-requests=-1"],
        "spec.engine.args[1]"),
    ("MTP by the name of its model",
     (("spec.engine", {"image": "vllm/vllm-openai:v0.33.0"}),
      ("spec.draft", {"algorithm": "Custom", "name": "deepseek_mtp"}),
      ("spec.pools.0.candidates", GONE),
      ("spec.candidates", [
          {"name": "own", "custom": {"args": ["--speculative-config.num_speculative_tokens=3"]}}])), "spec.draft.name"),
    one("a schema that is none", "spec.benchmark.datasets",
        [{"name": "bugs", "source": "builtin://code", "responseFormat":
          '{"type": "json_schema", "json_schema": {"name": "bug", "schema": {"type": "integre"}}}'}],
        "spec.benchmark.datasets[0].responseFormat"),
    one("an adapter that nothing loads", "spec.benchmark.datasets",
        [{"name": "sql", "source": "builtin://code", "adapter": "sql"}], "spec.engine.args"),
    one("a label's key that is none", "spec.benchmark.podLabels", {"a b": "c"}, "spec.benchmark.podLabels"),
    one("a pod template of 100 kB", "spec.engine.podTemplate", {"metadata": {"annotations": {"a": "x" * 100_000}}},
        "spec.engine.podTemplate"),
    # Arguments: the engine's own tables.
    one("a port among the arguments", "spec.engine.args", [TRITON, "--port", "30000"], "spec.engine.args[1]"),
    one("speculation among the arguments", "spec.engine.args",
        [TRITON, "--speculative-algorithm=EAGLE"], "spec.engine.args[1]"),
    one("a flag that is none", "spec.engine.args", [TRITON, "--mem-fraction-statik=0.8"], "spec.engine.args[1]"),
    one("a flag twice", "spec.engine.args", [TRITON, "--attention-backend=fa3"], "spec.engine.args[1]"),
    one("a variable of the kubelet's", "spec.engine.args", [TRITON, "--dtype=$(TYPE)"], "spec.engine.args[1]"),
    one("arms that differ in more than speculation", f"{FIRST}.args", ["--attention-backend=fa3"],
        "spec.candidates[0].args[0]"),
    one("a tree without an attention backend", "spec.engine.args", [], "spec.engine.args"),
    one("a flag in short", "spec.engine.args", [TRITON, "--mem-frac=0.8"], "spec.engine.args[1]"),
    one("a flag of an older release", "spec.engine.args", [TRITON, "--enable-ep-moe"], "spec.engine.args[1]"),
    one("a value that is no number", "spec.engine.args", [TRITON, "--mem-fraction-static=lots"], "spec.engine.args[1]"),
    one("an API key in clear", "spec.engine.args", [TRITON, "--api-key=s3cret"], "spec.engine.args[1]"),
    one("tokens that the target would not have written", "spec.engine.args",
        [TRITON, "--speculative-accept-threshold-single=0.9"], "spec.engine.args[1]"),
    one("a weight cache beside a draft", "spec.engine.args", [TRITON, "--weight-cache-mode=daemon"],
        "spec.engine.args[1]"),
    # What makes numbers up, and limits below the load.
    one("acceptance that is made up", "spec.engine.env", [{"name": "SGLANG_SIMULATE_ACC_LEN", "value": "4"}],
        "spec.engine.env[0].name"),
    ("acceptance that is made up in the pod template", (server(env=[{"name": "SGLANG_SIMULATE_ACC_METHOD"}]),),
     "spec.engine.podTemplate.spec.containers[0].env[0].name"),
    one("a run of 4 that is called one of 32", "spec.engine.args", [TRITON, "--max-running-requests=4"],
        "spec.engine.args[1]"),
    one("answers that end before their cap", "spec.engine.args", [TRITON, "--context-length=512"],
        "spec.engine.args[1]"),
    one("a cache of fewer tokens than are asked for", "spec.engine.args", [TRITON, "--max-total-tokens=2048"],
        "spec.engine.args[1]"),
    # Trees and algorithms by engine and version.
    one("a table of tokens that EAGLE3 does not read", f"{FIRST}.args", ["--speculative-token-map=/models/hot.pt"],
        "spec.candidates[0].args[0]"),
    ("a chain that loses overlap scheduling and nobody said so",
     (*OLD, ("spec.engine.env", []), (f"{FIRST}.tree", tree(3, 1, 4))), "spec.engine.env"),
    ("a tree with a worker of chains",
     (*OLD, ("spec.engine.env", [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"}])), "spec.candidates[0].tree.topK"),
    one("a tree on a backend that drafts chains alone", "spec.engine.args", ["--attention-backend=trtllm_mha"],
        "spec.candidates[0].tree.topK"),
    one("a tree on pages that are not verified",
        "spec.engine.args", ["--attention-backend=fa4", "--page-size=16"], "spec.candidates[0].tree.topK"),
    one("rejection sampling of a tree", f"{FIRST}.args", ["--speculative-use-rejection-sampling"],
        "spec.candidates[0].args[0]"),
    one("memory that is sized by the algorithm", "spec.engine.version", "0.5.13", "spec.engine.args"),
    ("DFLASH before SGLang had it",
     (*OLD, ("spec.draft.algorithm", "DFLASH"), ("spec.pools.0.candidates", GONE),
      ("spec.candidates", [{"name": "block", "blockSize": 8}])), "spec.draft.algorithm"),
    ("a depth that adapts before SGLang could",
     (*OLD, (f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {})), "spec.candidates[1].adaptive"),
    ("a schedule before SGLang could read one",
     (*OLD, (f"{SECOND}.tree", GONE), (f"{SECOND}.depthByBatchSize", falling((1, 3), (9, 0)))),
     "spec.candidates[1].depthByBatchSize"),
    ("a schedule beside a file of one's own",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.depthByBatchSize", falling((1, 3), (9, 0))),
      (f"{SECOND}.args", ["--speculative-adaptive-config=/models/own.json"])), "spec.candidates[1].args[0]"),
    ("a schedule without room for it",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.depthByBatchSize", falling((1, 3), (9, 0))),
      ("spec.engine.args", [TRITON, "--enable-two-batch-overlap"])), "spec.candidates[1].depthByBatchSize"),
    ("a depth that is none of the adaptive ones",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.adaptive", {"numSteps": 9})), "spec.candidates[1].adaptive.numSteps"),
    ("lossy verification of an algorithm that no rule knows",
     ((f"{SECOND}.draft", {"algorithm": "Custom", "name": "UNO"}), (f"{SECOND}.tree", GONE),
      (f"{SECOND}.custom", {"args": ["--speculative-accept-threshold-single=0.9"]})),
     "spec.candidates[1].custom.args[0]"),
    ("a match window that SGLang has no more",
     (NGRAM, (f"{SECOND}.tree", GONE), (f"{SECOND}.ngram", {"minMatch": 2})), "spec.candidates[1].ngram.minMatch"),
    # Pod templates.
    ("an image in the pod template", (server(image="x"),), "spec.engine.podTemplate.spec.containers[0].image"),
    ("a command in the pod template", (server(command=["sh"]),), "spec.engine.podTemplate.spec.containers[0].command"),
    one("a sidecar at the engine's port", "spec.engine.podTemplate",
        {"spec": {"containers": [{"name": "proxy", "image": "i", "args": ["--port=30000"]}]}},
        "spec.engine.podTemplate.spec.containers[0].args[0]"),
    one("a flag and its value in one word", "spec.engine.args", ["--attention-backend triton"], "spec.engine.args[0]"),
    one("a label of ours in the pod template", "spec.engine.podTemplate",
        {"metadata": {"labels": {"paceline.dev/pool": "x"}}},
        "spec.engine.podTemplate.metadata.labels.paceline.dev/pool"),
    one("a volume named as those of models are", "spec.engine.podTemplate",
        {"spec": {"volumes": [{"name": "image-0123456789", "emptyDir": {}}]}},
        "spec.engine.podTemplate.spec.volumes[0].name"),
    one("the accelerators' claim once more", "spec.engine.podTemplate",
        {"spec": {"resourceClaims": [{"name": "accelerators", "resourceClaimName": "mine"}]}},
        "spec.engine.podTemplate.spec.resourceClaims[0].name"),
    one("a token of the service account", "spec.engine.podTemplate",
        {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}},
        "spec.engine.podTemplate.spec.volumes[0].projected.sources[0].serviceAccountToken"),
    one("the priority of the cluster's own pods", "spec.engine.podTemplate",
        {"spec": {"priorityClassName": "system-cluster-critical"}}, "spec.engine.podTemplate.spec.priorityClassName"),
    ("a volume of a round's own in the server's container",
     (server(volumeMounts=[{"name": "ctl-in", "mountPath": "/mine"}]),),
     "spec.engine.podTemplate.spec.containers[0].volumeMounts[0].name"),
    one("a typo in the pod template", "spec.engine.podTemplate", {"spec": {"hostaliases": []}},
        "spec.engine.podTemplate.spec.hostaliases"),
    one("nodes chosen in the pod template", "spec.engine.podTemplate", {"spec": {"nodeSelector": {"rack": "a"}}},
        "spec.engine.podTemplate.spec.nodeSelector"),
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
        ("spec.candidates.0.tree", tree(5, 8, 32)),
     ), "spec.engine.args[0]"),
)  # fmt: skip


VALIDATE_ON_TPU: tuple[Told, ...] = (
    one("acceptance that is made up on TPU", "spec.engine.env", [{"name": "SIMULATE_ACC_LEN", "value": "4"}],
        "spec.engine.env[0].name"),
    one("a flag that sglang-jax has not", "spec.engine.args", ["--page-size=64", "--mem-fraction-statik=0.8"],
        "spec.engine.args[1]"),
    one("a form of answers that sglang-jax passes over once it speculates", "spec.benchmark.datasets",
        [{"name": "chat", "source": "builtin://chat"},
         {"name": "code", "source": "builtin://code", "responseFormat": '{"type": "json_object"}'}],
        "spec.benchmark.datasets[1].responseFormat"),
    one("speculation on TPU with pages of one token", "spec.engine.args", ["--dtype=bfloat16"], "spec.engine.args"),
)  # fmt: skip
VALIDATE_ON_VLLM: tuple[Told, ...] = (
    one("acceptance that is made up by vLLM", "spec.engine.args",
        ["--speculative-config.rejection_sample_method=synthetic"], "spec.engine.args[0]"),
    one("a context on vLLM in a unit that it does not have", "spec.engine.args", ["--max-model-len=32Ki"],
        "spec.engine.args[0]"),
    one("calls of tools on vLLM that nothing parses", "spec.engine.args", ["--enable-auto-tool-choice"],
        "spec.engine.args[0]"),
    one("fewer seats than requests on vLLM", "spec.engine.args", ["--max-num-seqs=4"], "spec.engine.args[0]"),
    one("answers that end before their cap on vLLM", "spec.engine.args", ["--max-model-len=512"],
        "spec.engine.args[0]"),
    one("grammars that take no draft back", "spec.engine.args",
        ["--structured-outputs-config.backend=lm-format-enforcer"], "spec.engine.args[0]"),
    one("SGLang's flags for vLLM", "spec.engine.args", ["--mem-fraction-static=0.8"], "spec.engine.args[0]"),
    one("speculation among vLLM's arguments", "spec.engine.args", ['--speculative-config={"method": "eagle3"}'],
        "spec.engine.args[0]"),
    ("a depth that adapts beside LoRA", (
        (f"{FIRST}.tree", GONE), (f"{FIRST}.adaptive", {}), ("spec.engine.args", ["--enable-lora"])),
     f"{FIRST_OF_VLLM}.adaptive"),
    ("a schedule that vLLM would drop in silence", (
        (f"{FIRST}.tree", GONE), (f"{FIRST}.depthByBatchSize", falling((1, 4), (9, 0))),
        ("spec.engine.args", ["-dp", "2"])), f"{FIRST_OF_VLLM}.depthByBatchSize"),
    ("acceptance that is made up, of an algorithm that no rule knows", (
        ("spec.draft", {"algorithm": "Custom", "name": "ngram_gpu"}), ("spec.pools.1.candidates", GONE),
        ("spec.candidates", [
            {"name": "suffix", "custom": {"args": ["--speculative-config.rejection_sample_method=synthetic"]}}])),
     f"{FIRST_OF_VLLM}.custom.args[0]"),
    one("several nodes for vLLM", "spec.accelerator.nodes", 2, "spec.accelerator.nodes"),
)  # fmt: skip
