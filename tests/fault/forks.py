"""A story with a fork at each write of the operator and at each event that its watches tell it: one road goes on as if
nothing had happened, to the next fork, and on the other one something goes wrong. What comes before a fork is so told
once, not once for each thing that can go wrong there; each other road is a process of its own.
"""

import asyncio
import gc
import json
import os
import resource
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NoReturn

from tests.fault.oracle import differences, ending
from tests.fault.stories import Story, should, tell
from tests.fault.world import World
from tests.support.memory import MemoryApi, Write

from paceline.kube import WatchEvent
from paceline.kube.resources import EVENT

MOST_AT_ONCE = 2
MOST_CPU_SECONDS = 20
"""A road on which people write against each other for ever ends here; most take a fraction of a second."""
MOST_LIVES = 4
"""Processes that something may still go wrong in."""
Check = Callable[[World], list[str]]
"""What is wrong with a world when all is over."""
Moment = Literal["before", "after", "heard"]


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """Something that happens right before a write, right after one that changed something, or when a watch tells an
    event. What it raises at a write, or what it returns is awaited and then raises, is the operator's answer; what it
    returns of an event is what arrives of it."""

    what: str
    when: Moment
    do: Callable[..., Any]
    """Of the world; of an event, too."""
    then: "Mishap | None" = None
    later: int = 0
    """That many moments of its kind after this one, the second of a pair happens."""

    def __str__(self) -> str:
        return self.what


Chosen = Callable[[Mishap, int], bool]
"""Whether something goes wrong in this way at this step: writes and events are counted apart, each from 1."""


@dataclass(frozen=True)
class Road:
    """Where one road left the main one, and what is wrong at its end."""

    mishap: Mishap
    where: str
    wrong: Sequence[str]

    def __str__(self) -> str:
        return "\n".join([f"{self.mishap} {self.where}:", *(f"    {line}" for line in self.wrong)])


class Fork:
    """The other road of one step, as seen from the main one."""

    def __init__(self, mishap: Mishap, where: str) -> None:
        self.mishap, self.where = mishap, where
        self.reader, self._writer = os.pipe()
        self.child = os.fork()
        os.close(self._writer if self.child else self.reader)  # or a later child would keep it open

    def report(self, wrong: list[str]) -> NoReturn:
        """The end of the other road."""
        with os.fdopen(self._writer, "w") as pipe:
            json.dump(wrong, pipe)
        os._exit(0)

    def read(self) -> Road:
        with os.fdopen(self.reader) as pipe:
            said = pipe.read()
        os.waitpid(self.child, 0)
        return Road(self.mishap, self.where, json.loads(said) if said else ["went on for ever"])


@dataclass
class Roads:
    """All roads of a story, with these mishaps at each fork that is chosen."""

    story: Story
    mishaps: Sequence[Mishap]
    check: Callable[[Mishap], Check]
    chosen: Chosen = lambda mishap, step: True
    roads: list[Road] = field(default_factory=list, init=False)
    writes: int = field(default=0, init=False)
    """Steps of the main road: writes that are no Events, and events that arrived."""
    heard: int = field(default=0, init=False)

    def go(self) -> None:
        """AssertionError with all that is wrong, by where its road leaves."""
        self.drive()
        assert (wrong := [str(road) for road in self.roads if road.wrong]) == [], "\n".join(wrong)

    def drive(self) -> None:
        """Fills `roads`. AssertionError if the main road does not end as the story does."""
        expected = should(self.story)  # known before the first fork
        self.open: deque[Fork] = deque()
        self.here: Fork | None = None
        self.pending: Mishap | None = None
        self.countdown = 0
        try:
            world = tell(self.story, *[self._life] * MOST_LIVES)
            wrong = self.check(self.here.mishap)(world) if self.here else differences(ending(world.cluster), expected)
        except BaseException:
            if self.here is None:
                raise
            wrong = [traceback.format_exc()]
        if self.here is not None:
            self.here.report(wrong)
        while self.open:
            self._close()
        assert not wrong, "\n".join(["not told the same way twice:", *wrong])

    def _life(self, world: World) -> MemoryApi:
        return MemoryApi(
            world.cluster,
            before=partial(self._write, world, "before"),
            after=partial(self._write, world, "after"),
            deliver=partial(self._hear, world),
        )

    def _write(self, world: World, when: Moment, write: Write) -> Any:
        if write.ref.resource == EVENT:  # nobody decides by Events
            return None
        if self.here is None and when == "before":
            self.writes += 1
        happens = self._fork(world, when, self.writes, f"{when} write {self.writes}, {write.verb} {write.ref}")
        return happens.do(world) if happens else None

    def _hear(self, world: World, event: WatchEvent) -> Iterable[WatchEvent]:
        if event.type == "BOOKMARK":
            return (event,)
        if self.here is None:
            self.heard += 1
        found = event.object["metadata"]
        where = f"when {self.heard} is heard, {event.type} {event.object['kind']} {found['name']}"
        happens = self._fork(world, "heard", self.heard, where)
        arrives: Iterable[WatchEvent] | None = happens.do(world, event) if happens else None
        return (event,) if arrives is None else arrives

    def _fork(self, world: World, when: Moment, step: int, where: str) -> Mishap | None:
        """What happens on this road now."""
        if self.here is not None:
            return self._second(when)
        for mishap in self.mishaps:
            if mishap.when != when or not self.chosen(mishap, step):
                continue
            if len(self.open) >= MOST_AT_ONCE:
                self._close()
            fork = Fork(mishap, where)
            if fork.child == 0:
                self.here = fork
                self.pending, self.countdown = mishap.then, mishap.later
                gc.disable()  # it would write to every page that the two still share
                resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
                asyncio._set_running_loop(world.loop)  # which is the parent's until one says so
                return mishap
            self.open.append(fork)
        return None

    def _second(self, when: Moment) -> Mishap | None:
        if self.pending is None or self.pending.when != when:
            return None
        self.countdown -= 1
        if self.countdown > 0:
            return None
        second, self.pending = self.pending, None
        return second

    def _close(self) -> None:
        self.roads.append(self.open.popleft().read())


def at_each_write(story: Story, mishap: Mishap, check: Check) -> Roads:
    """The same mishap at each fork."""
    return Roads(story, (mishap,), lambda _: check)
