"""An event loop in which nobody waits: when all are waiting, the clock jumps to the next alarm."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
A_MOMENT = 1e-9
"""Seconds: who is woken by an alarm must find that its time has come, though floats are not exact."""


class _Jump(selectors.SelectSelector):
    """Nothing ever comes from outside, so a wait is over at once and counts as waited."""

    clock = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and for no time")
        self.clock += timeout + A_MOMENT if timeout > 0 else 0.0
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is in virtual seconds, from 0. What runs on it runs in the same order every time."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.clock


def run(main: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
