"""What the real vLLM says to speculative configurations on either model runner: `DIR/venv/bin/python
dev/vllm/try_speculation.py OUT`, in DIR, which is a directory as `make test-vllm` has one.

Each case goes as far as the whole configuration is checked (`create_engine_config`), which needs no GPU. Written is
OUT/speculation.jsonl, for the tests of the contract: the runner, the settings, the options, and what was said ("" where
the configuration stands).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
TARGET, HEAD = "models/target", "models/eagle3"
EAGLE3 = {"method": "eagle3", "model": HEAD, "num_speculative_tokens": 3}
MODEL = {"method": "draft_model", "model": TARGET, "num_speculative_tokens": 3}
Case = tuple[dict[str, Any], dict[str, Any]]
ON_BOTH: tuple[Case, ...] = (
    (EAGLE3, {}),
    (MODEL, {}),
    ({"method": "ngram", "num_speculative_tokens": 3}, {}),
    ({"method": "ngram_gpu", "num_speculative_tokens": 3}, {}),
    ({"method": "custom_class", "model": "a.B", "num_speculative_tokens": 3}, {}),
    ({**EAGLE3, "parallel_drafting": True}, {}),
    ({**MODEL, "parallel_drafting": True}, {}),
    ({**MODEL, "use_heterogeneous_vocab": True}, {}),
    ({**EAGLE3, "draft_lm_head_quantization": "fp8"}, {}),
    ({}, {"prefill_context_parallel_size": 2}),
    ({}, {"enable_trace_replay": True}),
    ({}, {"pipeline_parallel_size": 2, "async_scheduling": True}),
)
SETTINGS = (
    {"method": "custom_class", "num_speculative_tokens": 16},
    {"method": "custom_class", "model": "a.B"},
    {"method": "ngram_gpu"},
    {"method": "extract_hidden_states"},
    {"method": "medusa", "num_speculative_tokens": 3},
    {"method": "sufix", "num_speculative_tokens": 3},
)
KEYS: tuple[tuple[str, Any], ...] = (
    ("draft_pipeline_parallel_size", 1),
    ("ngram_prompt_lookup_max", 4),
    ("tensor_parallel_size", 1),
    ("draft_tensor_parallel_size", 1),
    ("draft_tensor_parallel_size", 2),
    ("attention_backend", "FLASH_ATTN"),
    ("attention_backend", "flash_attn"),
    ("attention_backend", "auto"),
    ("attention_backend", "FLASH_ATTENTION"),
    ("moe_backend", "triton"),
    ("moe_backend", "nonsense"),
    ("kv_cache_dtype", "fp8"),
    ("quantization", "fp8"),
    ("draft_sample_method", "probabilistic"),
    ("draft_sample_method", "random"),
    ("disable_padded_drafter_batch", "True"),
    ("disable_padded_drafter_batch", "maybe"),
    ("dspark_draft_topk", 4),
    ("use_heterogeneous_vocab", True),
    ("index_share_for_mtp_iteration", True),
    ("xpress_topc", 4),
    ("draft_load_config", {"load_format": "dummy"}),
)
CASES = (
    *(("1", *case) for case in ON_BOTH),
    *(("0", *case) for case in ON_BOTH),
    ("1", EAGLE3, {"ubatch_size": 2}),
    ("0", {**EAGLE3, "enable_adaptive_verification": True}, {}),
    *(("0", settings, {}) for settings in SETTINGS),
    *(("0", {**EAGLE3, key: value}, {}) for key, value in KEYS),
)


def main(out: Path) -> None:
    from vllm.engine.arg_utils import EngineArgs

    with (out / "speculation.jsonl").open("w") as file:
        for runner, settings, options in CASES:
            os.environ["VLLM_USE_V2_MODEL_RUNNER"] = runner
            says = ""
            try:
                EngineArgs(
                    model=TARGET, max_model_len=1024, speculative_config=dict(settings) or None, **options
                ).create_engine_config()
            except (ValueError, ImportError) as error:
                says = " ".join(str(error).partition(" [type=")[0].split())[:200]
            row = {"runner": runner, "settings": settings, "options": options, "says": says}
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
