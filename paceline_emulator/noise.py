"""The noise of a point: one log-normal factor on throughput, the same for all of a point's requests."""

import hashlib
import json
import math
import random
from collections.abc import Sequence


def factor(cv: float, uid: str, argv: Sequence[str], flushes: int) -> float:
    """Coefficient of variation `cv`; follows from the pod's uid, the arm's argv and how often was flushed."""
    if cv <= 0:
        return 1.0
    seed = hashlib.sha256(json.dumps([uid, list(argv), flushes]).encode()).digest()
    return random.Random(seed).lognormvariate(0.0, math.sqrt(math.log1p(cv * cv)))
