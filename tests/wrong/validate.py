"""Rows of stage validate: what an engine of that version refuses, and what CEL cannot see. Run in
tests/api/test_refusals.py."""

from typing import Any

from tests.support.edits import GONE, Change
from tests.wrong.rows_in_short import FIRST, FIRST_OF_VLLM, NGRAM, SECOND, WIDE, Told, falling, one, tree

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
     (("spec.pools.1.candidates", GONE), ("spec.pools.1.search", {
         "numSteps": {"min": 5, "max": 5}, "topK": {"min": 1, "max": 1}, "numDraftTokens": {"min": 2, "max": 3}})),
     "spec.pools[1].search", "can run no tree of these ranges with these arguments: a chain (topK 1) needs"),
    ("a search with chains that would lose what the baseline keeps",
     (*OLD, ("spec.pools.1.candidates", GONE), ("spec.pools.1.search", {
         "numSteps": {"min": 1, "max": 7}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 16}})),
     "spec.engine.env", "takes overlap scheduling from a chain"),
    one("an hour that no clock shows", "spec.benchmark.window", {**NIGHT, "schedule": "0 25 * * *"},
        "spec.benchmark.window.schedule", "such as 0 22 * * * (22:00 each day): bad hour"),
    one("a day that never comes", "spec.benchmark.window", {**NIGHT, "schedule": "0 0 30 2 *"},
        "spec.benchmark.window.schedule", "bad day-of-month"),
    one("a zone of another planet", "spec.benchmark.window", {**NIGHT, "timeZone": "Mars/Base"},
        "spec.benchmark.window.timeZone", "must be a zone of the IANA database, such as Europe/Berlin or UTC"),
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
    ("two candidates of an algorithm without a word that are the same but for how its flags are written",
     (("spec.pools.0.candidates", [
         {"name": "a", "draft": UNO, "custom": {"args": ["--uno-a=3", "--uno-b", "4"]}},
         {"name": "b", "draft": {**UNO, "name": "uno"}, "custom": {"args": ["--uno-b=4", "--uno-a", "3"]}}]),),
     "spec.pools[0].candidates[1]", "b is the same as a"),
    ("two candidates of it of which one has its flag where the other's own are",
     (("spec.pools.0.candidates", [
         {"name": "a", "draft": UNO, "custom": {"args": ["--speculative-attention-mode=decode"]}},
         {"name": "b", "draft": UNO, "custom": {}, "args": ["--speculative-attention-mode", "decode"]}]),),
     "spec.pools[0].candidates[1]", "b is the same as a"),
    one("a limit that admits no request", "spec.engine.args", [TRITON, "--max-running-requests=-1"],
        "spec.engine.args[1]", "admits no request; write at least 32, or leave it out"),
    ("MTP by the name of its model",
     (("spec.engine.name", "VLLM"), ("spec.engine.version", "0.33.0"), ("spec.engine.args", []),
      ("spec.draft", {"algorithm": "Custom", "name": "deepseek_mtp"}),
      ("spec.pools", [{"name": "a", "concurrency": [1], "candidates": [
          {"name": "own", "custom": {"args": ["--speculative-config.num_speculative_tokens=3"]}}]}])),
     "spec.draft.name", "deepseek_mtp is vLLM's name of MTP on one model; write algorithm: MTP"),
    one("a schema that is none", "spec.benchmark.datasets",
        [{"name": "bugs", "source": "builtin://code", "responseFormat":
          '{"type": "json_schema", "json_schema": {"name": "bug", "schema": {"type": "integre"}}}'}],
        "spec.benchmark.datasets[0].responseFormat", "json_schema.schema is no JSON schema: 'integre'"),
    one("an adapter that nothing loads", "spec.benchmark.datasets",
        [{"name": "sql", "source": "builtin://code", "adapter": "sql"}],
        "spec.engine.args", "load it, with --lora-paths sql=PATH in engine.args"),
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
        "spec.engine.env[0].name", "fakes acceptance: no real server has this speed"),
    ("acceptance that is made up in the pod template", (server(env=[{"name": "SGLANG_SIMULATE_ACC_METHOD"}]),),
     "spec.engine.podTemplate.spec.containers[0].env[0].name", "fakes acceptance"),
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
    ("a schedule before SGLang could read one",
     (*OLD, (f"{SECOND}.tree", GONE), (f"{SECOND}.schedule", falling((1, 3), (9, 0)))),
     "spec.pools[1].candidates[1].schedule", "SGLang 0.5.6 has no depth by batch size; 0.5.13 has it"),
    ("a schedule beside a file of one's own",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.schedule", falling((1, 3), (9, 0))),
      (f"{SECOND}.args", ["--speculative-adaptive-config=/models/own.json"])),
     "spec.pools[1].candidates[1].args[0]", "is written from schedule; remove it"),
    ("a schedule without room for it",
     ((f"{SECOND}.tree", GONE), (f"{SECOND}.schedule", falling((1, 3), (9, 0))),
      ("spec.engine.args", [TRITON, "--enable-two-batch-overlap"])),
     "spec.pools[1].candidates[1].schedule", "does not go with a schedule: name a tree"),
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
    one("a token of the service account", "spec.engine.podTemplate",
        {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}},
        "spec.engine.podTemplate.spec.volumes[0].projected.sources[0].serviceAccountToken", "stays false"),
    one("the priority of the cluster's own pods", "spec.engine.podTemplate",
        {"spec": {"priorityClassName": "system-cluster-critical"}},
        "spec.engine.podTemplate.spec.priorityClassName", "a class of yours"),
    ("a volume of a round's own in the server's container",
     (server(volumeMounts=[{"name": "ctl-in", "mountPath": "/mine"}]),),
     "spec.engine.podTemplate.spec.containers[0].volumeMounts[0].name", "mount one of yours"),
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
        "spec.engine.env[0].name", "fakes acceptance"),
    one("a flag that sglang-jax has not", "spec.engine.args", ["--page-size=64", "--mem-fraction-statik=0.8"],
        "spec.engine.args[1]", "did you mean --mem-fraction-static?"),
    one("a form of answers that sglang-jax passes over once it speculates", "spec.benchmark.datasets",
        [{"name": "chat", "source": "builtin://chat"},
         {"name": "code", "source": "builtin://code", "responseFormat": '{"type": "json_object"}'}],
        "spec.benchmark.datasets[1].responseFormat", "once it speculates (EAGLE3); remove it, or candidate chain"),
    one("speculation on TPU with pages of one token", "spec.engine.args", ["--dtype=bfloat16"],
        "spec.engine.args", "write --page-size=64"),
)  # fmt: skip
VALIDATE_ON_VLLM: tuple[Told, ...] = (
    one("acceptance that is made up by vLLM", "spec.engine.args",
        ["--speculative-config.rejection_sample_method=synthetic"], "spec.engine.args[0]", "remove it"),
    one("a context on vLLM in a unit that it does not have", "spec.engine.args", ["--max-model-len=32Ki"],
        "spec.engine.args[0]", "takes auto, or a whole number such as 8192, 8k (8000) or 8K (8192); got 32Ki"),
    one("calls of tools on vLLM that nothing parses", "spec.engine.args", ["--enable-auto-tool-choice"],
        "spec.engine.args[0]", "needs --tool-call-parser beside it"),
    one("fewer seats than requests on vLLM", "spec.engine.args", ["--max-num-seqs=4"],
        "spec.engine.args[0]", "write at least 8"),
    one("answers that end before their cap on vLLM", "spec.engine.args", ["--max-model-len=512"],
        "spec.engine.args[0]", "--max-model-len=512 is too short for"),
    one("grammars that take no draft back", "spec.engine.args",
        ["--structured-outputs-config.backend=lm-format-enforcer"], "spec.engine.args[0]", "does not go with drafts"),
    one("SGLang's flags for vLLM", "spec.engine.args", ["--mem-fraction-static=0.8"],
        "spec.engine.args[0]", "vLLM 0.33.0 has no flag --mem-fraction-static"),
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
