"""Writes paceline_emulator/vllm/data/profiles: `python -m tests.contract.make_vllm_profiles`.

Published (PUBLISHED): four throughputs of Qwen3-Coder-30B with an EAGLE3 head on one GB10, vLLM. Assumed: that the
head's next token is accepted with ACCEPTED, between what that article calls marginal and good; that a step's cost is
split evenly between drafting and verifying; and that all prompt sets are alike. The engine's own points are batch 1 and
32, so the line through batch 1 and 8 is drawn on to 32.
"""

import json
import math
from pathlib import Path
from typing import Any

TO = Path(__file__).parents[2] / "paceline_emulator/vllm/data/profiles"
DATASETS = ("code", "swe", "terminal", "chat")
STEPS = 4
ACCEPTED = 0.65
PUBLISHED = {"baseline": {1: 25.0, 8: 316.0}, "speculative": {1: 35.0, 8: 270.0}}
"""Output tokens per second by number of parallel requests, num_speculative_tokens 4; the first is "about 25"."""


def gb10() -> dict[str, Any]:
    length = sum(ACCEPTED**level for level in range(STEPS + 1))
    baseline = at_1_and_32(PUBLISHED["baseline"])
    speculative = at_1_and_32(PUBLISHED["speculative"])
    cost = {batch: (length * baseline[batch] / speculative[batch] - 1) / (2 * STEPS) for batch in baseline}
    dataset = {
        "baseline": baseline,
        "probability": ACCEPTED,
        "cost": {batch: {"draft": share, "verify": share} for batch, share in cost.items()},
    }
    return {
        "name": "qwen3-coder-30b-gb10",
        "source": "an article on speculative decoding with vLLM: Eagle3 on one NVIDIA GB10",
        "assumed": "see tests/contract/make_vllm_profiles.py",
        "target": {
            "architectures": ["Qwen3MoeForCausalLM"],
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "num_experts": 128,
        },
        "datasets": dict.fromkeys(DATASETS, dataset),
    }


def at_1_and_32(points: dict[int, float]) -> dict[int, float]:
    """The straight line in log-log through batch 1 and 8."""
    slope = math.log(points[8] / points[1]) / math.log(8)
    return {batch: points[1] * batch**slope for batch in (1, 32)}


if __name__ == "__main__":
    TO.mkdir(parents=True, exist_ok=True)
    made = gb10()
    (TO / f"{made['name']}.json").write_text(json.dumps(made, indent=1) + "\n")
