"""The algorithms that the API knows by name, and the shape of their drafts."""

from collections.abc import Mapping

from paceline.core.tree import CUSTOM

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
"""Algorithm → the field of an arm that gives the shape of its drafts."""
ALGORITHMS = tuple(SHAPES)
WITH_A_HEAD = tuple(algorithm for algorithm in ALGORITHMS if algorithm not in ("NGRAM", CUSTOM))
"""Algorithms that draft with a model: a trained head, layers of the target or a small model."""
