"""Writes the profiles of published_loads.py: `python -m tests.contract.make_loads`.

Published: throughputs, or speed-ups, under several loads. Assumed, because nothing is published about it: acceptance
lengths (LENGTHS), that a step's cost is split evenly between drafting and verifying, that all prompt sets are alike,
and where only speed-ups or only the speculating arms are published, the baseline (BASELINES). None of it moves a
published number.
"""

import json
import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.contract.make_profiles import probability
from tests.support import published_loads as published
from tests.support.published import PUBLISHED_AS, Tree

from paceline_emulator.engine import HOLD

EMULATOR = Path(__file__).parents[2] / "paceline_emulator"
SGLANG, VLLM = EMULATOR / "data/profiles", EMULATOR / "vllm/data/profiles"
LENGTHS = {"llm-d": 2.2, "vllm#49548": 2.2, "eagle-4": 5.0}
"""Tokens of a step; of llm-d's head its guide says 2.1 to 2.3 for chat."""
BASELINES = {"eagle-4": {1: 150.0, 8: 900.0, 64: 4000.0}, "vllm#49548": {1: 39.7, 8: 185.6}}
"""Tokens a second by requests at a time: for EAGLE-4 any, for vllm#49548 those that two tokens make 1.5 and 1.25 times
as fast."""

Curve = Mapping[float, float]
"""Output tokens a second by requests at a time, rising; straight in log-log between two, and flat from the last on."""


def qwen3_32b() -> dict[str, Any]:
    """llm-d's table. Its last stage, of twice the requests that either arm can take, says how many are under way at
    most."""
    baseline, speculative = published.LLM_D_BASELINE, published.LLM_D_EAGLE3
    return {
        "name": "qwen3-32b-h200",
        "source": published.LLM_D,
        "assumed": ASSUMED,
        "target": {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 64},
        "seats": {"baseline": round(baseline[-1].under_way), "speculative": round(speculative[-1].under_way)},
        **datasets(of_stages(baseline), of_stages(speculative), (3, 1, 4), LENGTHS["llm-d"]),
    }


def of_stages(stages: Iterable[published.Stage]) -> Curve:
    return dict(map(of_stage, stages))


def of_stage(stage: published.Stage) -> tuple[float, float]:
    """Requests under way, and their throughput. The engine holds a freed place for HOLD seconds, and what comes at a
    rate does not take it: it costs as much as a request that is under way."""
    held = HOLD if stage.answers_all else 0.0
    return stage.under_way + stage.rate * held, stage.throughput + stage.rate * held / (stage.tpot / 1000)


def qwen35_122b() -> dict[str, Any]:
    """vllm#49548: what the schedule leaves of the throughput of always two tokens."""
    static = published.STATIC
    low, high = (round(throughput / static[8], 4) for throughput in published.DYNAMIC_AT_8)
    return {
        "name": "qwen3.5-122b-gb10",
        "source": published.VLLM_49548,
        "assumed": ASSUMED,
        "target": {
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "hidden_size": 3072,
            "num_hidden_layers": 48,
            "num_experts": 256,
        },
        "scheduled": {"drafting": round(published.DYNAMIC_AT_1 / static[1], 4), "resting": [low, high]},
        **datasets(BASELINES["vllm#49548"], static, (2, 1, 3), LENGTHS["vllm#49548"]),
    }


def qwen38_27b() -> dict[str, Any]:
    baseline = BASELINES["eagle-4"]
    faster = {batch: throughput * published.SPEED_UPS[batch] for batch, throughput in baseline.items()}
    return {
        "name": "qwen3.8-27b-b300",
        "source": published.EAGLE_4,
        "assumed": ASSUMED,
        "target": {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "hidden_size": 5120,
            "num_hidden_layers": 64,
        },
        **datasets(baseline, faster, published.TREE, LENGTHS["eagle-4"]),
    }


ASSUMED = "see tests/contract/make_loads.py"


def datasets(baseline: Mapping[Any, float], speculative: Mapping[Any, float], tree: Tree, length: float) -> Any:
    """Both curves at the batch sizes of either, and the costs that follow from them."""
    steps, _, width = tree
    sizes = sorted({*baseline, *speculative})
    plain = {size: at(baseline, size) for size in sizes}
    share = {size: (length * plain[size] / at(speculative, size) - 1) / (steps + width - 1) for size in sizes}
    every = {
        "baseline": {f"{size:g}": round(throughput, 4) for size, throughput in plain.items()},
        "probability": round(probability(length, tree), 6),
        "cost": {f"{size:g}": {"draft": round(one, 6), "verify": round(one, 6)} for size, one in share.items()},
    }
    return {"datasets": dict.fromkeys(PUBLISHED_AS, every)}


def at(curve: Curve, size: float) -> float:
    """Between the points, and below the first as between the first two."""
    if size >= max(curve):
        return curve[max(curve)]
    low, high = next(pair for pair in pairwise(sorted(curve)) if size < pair[1])
    return curve[low] * math.pow(size / low, math.log(curve[high] / curve[low]) / math.log(high / low))


def files() -> dict[Path, str]:
    """What belongs there, by path."""
    made = [(VLLM, qwen3_32b()), (VLLM, qwen35_122b()), (SGLANG, qwen38_27b())]
    return {where / f"{profile['name']}.json": json.dumps(profile, indent=1) + "\n" for where, profile in made}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
        print(path)
