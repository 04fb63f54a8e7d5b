"""The noise of a point: one log-normal factor on throughput, the same for all of a point's requests. And what is known
of a point by its range alone."""

import hashlib
import json
import math
import random
from collections.abc import Sequence


def factor(cv: float, uid: str, argv: Sequence[str], flushes: int) -> float:
    """Coefficient of variation `cv`; follows from the pod's uid, the arm's argv and how often was flushed."""
    if cv <= 0:
        return 1.0
    return _dice(uid, argv, flushes).lognormvariate(0.0, math.sqrt(math.log1p(cv * cv)))


def within(least: float, most: float, uid: str, argv: Sequence[str], flushes: int) -> float:
    """Anywhere between the two, evenly in the logarithm; follows from the same three."""
    return least * math.pow(most / least, _dice(f"{uid} within", argv, flushes).random())


def _dice(uid: str, argv: Sequence[str], flushes: int) -> random.Random:
    return random.Random(hashlib.sha256(json.dumps([uid, list(argv), flushes]).encode()).digest())
