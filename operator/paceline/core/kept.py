"""Results of pure functions, kept for the next pass: most of what a pass computes, the last one has computed too.

What is kept is shared by all who ask, so it must not be edited. It is bounded: objects that are at work are asked for
again and again, and what thousands of others came to would fill the memory for nothing.
"""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
_Result = TypeVar("_Result")


def by_value(most: int) -> Callable[[Callable[Given, _Result]], Callable[Given, _Result]]:
    """Keep the results of `most` different calls, by a hash of the arguments' content: equal bytes are equal values,
    whoever holds them. Arguments must be what pickle can write; they take some 50 µs per 10 kB."""

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
    """Keep the results of the last `most` different calls, by which objects the arguments are: for frozen objects that
    one pass asks about many times. They are kept, too, so that no other object can take the place of one."""

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
    """The oldest make room."""
    results[key] = result
    if len(results) > most:
        del results[next(iter(results))]
