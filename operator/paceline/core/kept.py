"""Caches results of pure functions: consecutive passes compute mostly the same.

Cached values are shared by all callers and must not be edited. Caches are bounded: active objects are requested again
and again, and results for thousands of others would fill the memory for nothing.
"""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
_Result = TypeVar("_Result")


def by_value(most: int) -> Callable[[Callable[Given, _Result]], Callable[Given, _Result]]:
    """Cache the results of `most` different calls, by a hash of the arguments' content. Arguments must be picklable;
    hashing takes some 50 µs per 10 kB."""

    def keep(function: Callable[Given, _Result]) -> Callable[Given, _Result]:
        results: dict[bytes, _Result] = {}

        def call(*args: Given.args, **kwargs: Given.kwargs) -> _Result:
            key = hashlib.sha256(pickle.dumps((args, kwargs))).digest()
            if key not in results:
                _keep(results, most, key, function(*args, **kwargs))
            return results[key]

        return call

    return keep


def by_identity(most: int) -> Callable[[Callable[Given, _Result]], Callable[Given, _Result]]:
    """Cache the results of the last `most` different calls, by the identity of the arguments: for frozen objects that
    one pass asks about many times. The cache keeps the arguments alive, so that no other object can take their
    identity."""

    def keep(function: Callable[Given, _Result]) -> Callable[Given, _Result]:
        results: dict[tuple[int, ...], tuple[Any, _Result]] = {}

        def call(*args: Given.args, **kwargs: Given.kwargs) -> _Result:
            key = tuple(map(id, (*args, *kwargs.values())))
            if key not in results:
                _keep(results, most, key, ((args, kwargs), function(*args, **kwargs)))
            return results[key][1]

        return call

    return keep


def _keep(results: dict[Any, Any], most: int, key: Any, result: Any) -> None:
    """Evicts the oldest."""
    results[key] = result
    if len(results) > most:
        del results[next(iter(results))]
