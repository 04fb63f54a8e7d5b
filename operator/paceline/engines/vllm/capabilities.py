"""vLLM's capabilities (0.33.0; paths below `vllm/`). Processes on several nodes would need Ray, or different arguments
per node: not supported."""

from paceline.core import ALGORITHMS, SPECULATORS, WITH_A_HEAD
from paceline.engines.capabilities import TPU, Capabilities
from paceline.engines.vllm.depth import ADAPTIVE_DEPTH

CAPABILITIES = Capabilities(
    algorithms=ALGORITHMS,
    repository="vllm/vllm-openai",
    aliases={"DRAFT_MODEL": "STANDALONE"},  # config/speculative.py:1244; `custom` has its MTP names, one per model
    adaptive=WITH_A_HEAD,  # all that draft from logits: v1/worker/gpu/spec_decode/speculator.py:173
    adaptive_steps=f"maximum number of proposed tokens, {ADAPTIVE_DEPTH} if absent; the engine decides in every step "
    "how many of them are verified",
    schedule=WITH_A_HEAD,
    custom_args="keys of the speculative configuration, as --speculative-config.KEY=VALUE",
    speculators=tuple(SPECULATORS),  # transformers_utils/configs/speculators/algos.py
    not_on=(TPU,),  # TPUs need another distribution, vllm-tpu, which was not read
    underscores=True,  # utils/argparse_utils.py:120-145
)
