"""The algorithms with a name in the API, and the shapes of their drafts."""

from collections.abc import Mapping

CUSTOM = "Custom"
"""Stands for an engine's algorithms without a name in the API."""

SHAPES: Mapping[str, str] = {
    "EAGLE": "tree",
    "EAGLE3": "tree",
    "NEXTN": "tree",
    "MTP": "tree",
    "STANDALONE": "tree",
    "NGRAM": "ngram",
    "DFLASH": "blockSize",
    "DSPARK": "blockSize",
    CUSTOM: "custom",
}
"""Algorithm → the arm's field with the shape of its drafts."""
ALGORITHMS = tuple(SHAPES)
WITH_A_HEAD = tuple(algorithm for algorithm in ALGORITHMS if algorithm not in ("NGRAM", CUSTOM))
"""Algorithms that draft with a model: a trained head, layers of the target or a small model."""
SPECULATORS: Mapping[str, str] = {"eagle3": "EAGLE3", "dflash": "DFLASH", "dflash2": "DFLASH", "dspark": "DSPARK"}
"""Type of a head in the speculators format → its algorithm (github.com/vllm-project/speculators c05b95b)."""
