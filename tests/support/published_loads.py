"""What others have published about speculation under several loads: what the emulator is held to, and the gate.

Each source is quoted as it was read on 22 November 2026; what is left open is assumed in tests/contract/make_loads.py.
"""

from dataclasses import dataclass

# llm-d, guides/spec-decoding/benchmark-results/vllm-qwen3-32b-eagle3/README.md at b4099d9d: vLLM behind llm-d's router.
LLM_D = (
    "https://github.com/llm-d/llm-d/blob/b4099d9d710e7e8c0877110e599211c19c6cf684/guides/spec-decoding/"
    "benchmark-results/vllm-qwen3-32b-eagle3/README.md"
)
LLM_D_SETUP = (
    "2 × H200 GPU (TP=2, replicas=1); Qwen/Qwen3-32B; RedHatAI/Qwen3-32B-speculator.eagle3 (method=eagle3, "
    "num_speculative_tokens=3); inference-perf v0.6.0; 5-stage constant-rate ladder (1 → 2 → 4 → 8 → 16 QPS), "
    "120 s per stage; random tokens, input ~2048 (normal, σ=1024, 10–4096), output ~256 (normal, σ=128, 10–512)"
)
LLM_D_CONCLUDED = (
    "EAGLE-3 delivers clear per-token wins at ≤4 QPS. At 8 QPS both arms are saturated and TPOT converges; the "
    "baseline pulls ahead on throughput (−13%) because the drafter consumes GPU resources that could otherwise serve "
    "concurrent decodes.",
    "Crossover QPS: ~4–8",
    "Disable (or scale out instead) above the crossover.",
)
LLM_D_OUTPUT = 256
"""Tokens of an answer, in the mean; σ is half of it."""
LLM_D_FIRST_TOKEN = {1: (0.167, 0.160), 2: (0.166, 0.191), 4: (0.210, 0.240)}
"""Median seconds to the first token, of the baseline and the head. Not emulated: prompts cost no time of their own."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`rate` requests a second; median time per output token in ms, and output tokens per second of the stage."""

    rate: int
    tpot: float
    throughput: float

    @property
    def under_way(self) -> float:
        """Requests at a time, by Little's law: tokens a second, each so long under way."""
        return self.throughput * self.tpot / 1000

    @property
    def answers_all(self) -> bool:
        """As fast as they come. At 8 and 16 requests a second both arms are full."""
        return self.rate <= 4


LLM_D_BASELINE = (
    Stage(1, 13.2, 265), Stage(2, 15.1, 525), Stage(4, 24.6, 1006), Stage(8, 209.7, 1649), Stage(16, 222.5, 1645)
)  # fmt: skip
LLM_D_EAGLE3 = (
    Stage(1, 9.7, 244), Stage(2, 11.7, 538), Stage(4, 21.4, 1032), Stage(8, 210.1, 1442), Stage(16, 220.7, 1473)
)  # fmt: skip

# vLLM, issue 49548 of 23 July 2026, open: a GB10, the MTP layer of Qwen3.5-122B.
VLLM_49548 = "https://github.com/vllm-project/vllm/issues/49548"
VLLM_49548_CONCLUDED = (
    "With the schedule `[[1,4,2],[5,512,0]]` (MTP k=2 for batch ≤ 4, spec disabled for batch ≥ 5), 8 concurrent "
    "180-token requests dropped from ~232 tok/s aggregate (static `num_speculative_tokens: 2`) to 24–157 tok/s, with "
    "wall-clock 40–60 s for a workload that completes in ~6.3 s under the static config",
    "the documented `FULL_AND_PIECEWISE → PIECEWISE` cudagraph downgrade, which costs ~14% single-stream (59.6 → "
    "50.0 tok/s). This is fine and matches the warning.",
)
SCHEDULE = [[1, 4, 2], [5, 512, 0]]
STATIC = {1: 59.6, 8: 232.0}
"""Output tokens per second of always two tokens, by requests at a time."""
DYNAMIC_AT_1 = 50.0
DYNAMIC_AT_8 = (24.0, 157.0)
ANSWER = 180
"""Tokens."""

# EAGLE-4, "Measured speedup" in the description of eagle-harness 0.1.3 on PyPI: SGLang, Qwen3.8-27B on four B300,
# temperature 0, SPEED-Bench. The tokens a second are in its support matrix, which was not to be had: quotients alone.
EAGLE_4 = "https://pypi.org/project/eagle-harness/0.1.3"
EAGLE_4_CONCLUDED = (
    "Each speedup divides EAGLE-4 throughput by the same engine's throughput without speculation",
    "Leave speculation on.",
)
SPEED_UPS = {1: 3.42, 8: 2.09, 64: 1.39}
"""By requests at a time."""
TREE = (12, 4, 16)
"""Of its command line: `--speculative-num-steps 12 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16`."""

# https://github.com/vllm-project/vllm/pull/52362, merged: DSpark of DeepSeek V4 on ROCm, 880 ShareGPT requests of 512
# tokens in each cell.
DSPARK = {
    "baseline": {4: 381.53, 8: 729.20, 16: 1342.83, 32: 2392.99, 64: 4094.75, 128: 6340.78, 256: 8878.57},
    "fixed": {4: 970.33, 8: 1762.59, 16: 2909.52, 32: 4756.32, 64: 6712.35, 128: 8778.87, 256: 7852.42},
    "adaptive": {4: 902.37, 8: 1616.77, 16: 2773.69, 32: 4501.11, 64: 7144.12, 128: 10356.48, 256: 13324.67},
}
"""Output tokens per second by requests at a time: without a draft, seven draft tokens, at most seven."""
