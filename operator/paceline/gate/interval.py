"""One-sided Student bounds on a mean of log ratios."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from paceline.core import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean of ln(candidate/baseline) with its lower and its upper one-sided bound; all three are logarithms."""

    mean: float
    lower: float
    upper: float

    @property
    def reach(self) -> float:
        """Half the width: a mean closer to 0 than this cannot be distinguished from 0."""
        return (self.upper - self.lower) / 2

    @property
    def bounds(self) -> Bounds:
        """The interval as ratios: the mean of logarithms becomes the geometric mean."""
        return Bounds(ratio=ratio(self.mean), lower=ratio(self.lower), upper=ratio(self.upper))


def interval(logs: Sequence[float], *, error: float, floor: float) -> Interval:
    """Bounds that each fail with probability `error` if the logs are independent and normal.

    `floor` is a lower bound on the standard deviation: three rounds can agree by luck. Needs at least two logs.
    """
    n = len(logs)
    mean = math.fsum(logs) / n
    sd = max(math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (n - 1)), floor)
    reach = student_quantile(error, n - 1) * sd / math.sqrt(n)
    return Interval(mean=mean, lower=mean - reach, upper=mean + reach)


@cache
def student_quantile(error: float, degrees: int) -> float:
    """The value of t that is exceeded with probability `error`.

    A root of mpmath's incomplete beta function, in log t, where the tail is nearly a line. mpmath is imported when
    first needed, as most passes judge nothing.
    """
    if error >= 0.5:
        return -student_quantile(1 - error, degrees) if error > 0.5 else 0.0
    import mpmath

    def excess(log_t: mpmath.mpf) -> mpmath.mpf:
        x = degrees / (degrees + mpmath.exp(2 * log_t))
        two_tails = mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True)
        return mpmath.log(two_tails / (2 * mpmath.mpf(error)))

    with mpmath.workdps(30):
        normal = math.log(NormalDist().inv_cdf(1 - error))
        return float(mpmath.exp(mpmath.findroot(excess, (normal, normal + 0.5))))


def ratio(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf
