"""A story with a fork at each write of the operator: one road goes on as if nothing had happened, to the next fork, and
on the other one something goes wrong. What comes before a write is so told once, not once for each thing that can go
wrong with it; each other road is a process of its own.
"""

import asyncio
import gc
import json
import os
import resource
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NoReturn

from tests.fault.oracle import differences, ending
from tests.fault.stories import Story, should, tell
from tests.fault.world import World
from tests.support.memory import MemoryApi, Write

from paceline.kube.resources import EVENT

MOST_AT_ONCE = 2
MOST_CPU_SECONDS = 20
"""A road on which people write against each other for ever ends here; most take a fraction of a second."""
Check = Callable[[World], list[str]]
"""What is wrong with a world when all is over."""


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """Something that happens right before a write, or right after one that changed something. What it raises is the
    operator's answer."""

    what: str
    when: Literal["before", "after"]
    do: Callable[[World], object]

    def __str__(self) -> str:
        return self.what


class Fork:
    """The other road of one write, as seen from the main one."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.reader, self._writer = os.pipe()
        self.child = os.fork()
        os.close(self._writer if self.child else self.reader)  # or a later child would keep it open

    def report(self, wrong: list[str]) -> NoReturn:
        """The end of the other road."""
        with os.fdopen(self._writer, "w") as pipe:
            json.dump(wrong, pipe)
        os._exit(0)

    def read(self) -> list[str]:
        with os.fdopen(self.reader) as pipe:
            said = pipe.read()
        os.waitpid(self.child, 0)
        wrong: list[str] = json.loads(said) if said else ["went on for ever"]
        return wrong


@dataclass
class Roads:
    """All roads of a story, with the same mishap at each fork."""

    story: Story
    mishap: Mishap
    check: Check

    def go(self) -> None:
        """AssertionError with all that is wrong, by the write where its road leaves."""
        expected = should(self.story)  # known before the first fork
        self.open: deque[Fork] = deque()
        self.wrong: list[str] = []
        self.here: Fork | None = None
        try:
            world = tell(self.story, self._life)
            wrong = self.check(world) if self.here else differences(ending(world.cluster), expected)
        except BaseException:
            if self.here is None:
                raise
            wrong = [traceback.format_exc()]
        if self.here is not None:
            self.here.report(wrong)
        while self.open:
            self._close()
        assert not wrong, "\n".join(["not told the same way twice:", *wrong])
        assert not self.wrong, "\n".join(self.wrong)

    def _life(self, world: World) -> MemoryApi:
        return MemoryApi(world.cluster, **{self.mishap.when: partial(self._fork, world)})

    def _fork(self, world: World, write: Write) -> None:
        if self.here is not None or write.ref.resource == EVENT:  # nobody decides by Events
            return
        if len(self.open) >= MOST_AT_ONCE:
            self._close()
        fork = Fork(write)
        if fork.child == 0:
            self.here = fork
            gc.disable()  # it would write to every page that the two still share
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
            asyncio._set_running_loop(world.loop)  # which is the parent's until one says so
            self.mishap.do(world)
        else:
            self.open.append(fork)

    def _close(self) -> None:
        fork = self.open.popleft()
        if wrong := fork.read():
            where = f"{self.mishap} {self.mishap.when} write {fork.write.number}, {fork.write.verb} {fork.write.ref}:"
            self.wrong += [where, *(f"    {line}" for line in wrong)]
