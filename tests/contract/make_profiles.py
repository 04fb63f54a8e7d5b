"""Writes paceline_emulator/data/profiles: `python -m tests.contract.make_profiles`.

Published: throughputs (published.py). Assumed, because nothing is published about it: what a verify step costs at
batch 1, and with it the acceptance. From there everything follows:
  batch 1, wide tree: cost = COST_OF_WIDE for every dataset, so A = speed-up · COST_OF_WIDE, monotone with the
                      speed-up, and p is the probability that gives this A.
  batch 32: A does not depend on the batch; the costs of the wide and the narrow tree are A / speed-up, two equations
            for the cost of a draft step and of a verified token.
"""

import json
from pathlib import Path
from typing import Any

from tests.support.published import NARROW, POINTS, PUBLISHED_AS, SOURCE, WIDE, Tree, throughput

from paceline_emulator.profile import COMPUTE_BOUND, Shape, acceptance

TO = Path(__file__).parents[2] / "paceline_emulator/data/profiles"

COST_OF_WIDE = 1.85
"""Baseline steps that a step with the wide tree takes at batch 1. Gives lengths of 2.2 to 2.8 of at most 4."""
DRAFT_AT_ONE = 0.25
"""Baseline steps that one draft step takes at batch 1."""

ASSUMED = (
    "acceptance probabilities and costs are not published: derived from the published throughputs and from the "
    f"assumption that a step with tree {WIDE} takes {COST_OF_WIDE} baseline steps at batch 1, of which a draft step "
    f"takes {DRAFT_AT_ONE}; beyond batch 32: flat from {COMPUTE_BOUND} tokens a forward pass"
)


def qwen3_coder_next() -> dict[str, Any]:
    return {
        "name": "qwen3-coder-next",
        "source": SOURCE,
        "assumed": ASSUMED,
        "target": {
            "architectures": ["Qwen3NextForCausalLM"],
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "num_experts": 512,
        },
        "published": [
            {
                "table": point.table,
                "dataset": point.dataset,
                "publishedAs": PUBLISHED_AS[point.dataset],
                "batch": point.batch,
                "tree": point.tree,
                "outputThroughput": point.throughput,
            }
            for point in POINTS
        ],
        "datasets": {name: dataset(name) for name in PUBLISHED_AS},
    }


def dataset(name: str) -> dict[str, Any]:
    """One dataset's parameters, solved from its five published throughputs."""

    def speed_up(batch: int, tree: Tree) -> float:
        return throughput(name, batch, tree) / throughput(name, batch, None)

    p = probability(speed_up(1, WIDE) * COST_OF_WIDE, WIDE)
    wide, narrow = (acceptance(p, shape(tree)) / speed_up(32, tree) - 1 for tree in (WIDE, NARROW))
    (s, _, n), (t, _, m) = WIDE, NARROW
    verify = (wide * t - narrow * s) / ((n - 1) * t - (m - 1) * s)
    draft = (wide - (n - 1) * verify) / s
    verify_at_one = (COST_OF_WIDE - 1 - s * DRAFT_AT_ONE) / (n - 1)
    return {
        "baseline": {"1": throughput(name, 1, None), "32": throughput(name, 32, None)},
        "probability": p,
        "acceptanceLengths": {str(tree): round(acceptance(p, shape(tree)), 3) for tree in (WIDE, NARROW)},
        "cost": {"1": {"draft": DRAFT_AT_ONE, "verify": verify_at_one}, "32": {"draft": draft, "verify": verify}},
    }


def probability(length: float, tree: Tree) -> float:
    """Bisection: acceptance rises with the probability."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if acceptance(middle, shape(tree)) < length else (low, middle)
    return (low + high) / 2


def shape(tree: Tree) -> Shape:
    return Shape(steps=tree[0], branches=tree[1], width=tree[2])


def generic() -> dict[str, Any]:
    every = {
        "baseline": {"1": 100.0, "32": 1500.0},
        "probability": 0.65,
        "cost": {"1": {"draft": 0.08, "verify": 0.02}, "32": {"draft": 0.06, "verify": 0.08}},
    }
    return {
        "name": "generic",
        "source": "none: invented for targets without a published table",
        "assumed": "everything",
        "datasets": dict.fromkeys(PUBLISHED_AS, every),
    }


def files() -> dict[Path, str]:
    """What belongs in the directory, by path."""
    return {
        TO / f"{profile['name']}.json": json.dumps(profile, indent=1) + "\n"
        for profile in (qwen3_coder_next(), generic())
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
        print(path)
