"""Many cases at once on one API server: first each story undisturbed, then again with a fault."""

import asyncio
import itertools
import logging
import random
import time
import traceback
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import scipy.stats  # noqa: F401 (before the loop runs: it takes seconds)
from tests.fault.oracle import Ending, differences
from tests.fault.real.case import Case
from tests.fault.real.faults import INJECTED, OF_WATCHES, OF_WRITES
from tests.fault.real.nature import NODES, WORKERS, Land, Nature
from tests.fault.real.proxy import Proxy
from tests.fault.real.stories import STORIES
from tests.fault.real.trouble import Trouble, WatchFault, WriteFault
from tests.support.apiserver import Running
from tests.support.kubelet import kubelets

from paceline.controller.kinds import RECONCILED_KINDS
from paceline.kube import Throttle, connect

TOGETHER = 20
"""Cases under way. They mostly wait: for hints, backoffs and rounds."""
NUMBERS = itertools.count(1)
Fault = WriteFault | WatchFault


@dataclass(frozen=True)
class Draw:
    """A case: `at` counts from 1, the writes or the events of the watches of the undisturbed story."""

    story: str
    fault: Fault
    at: int

    def __str__(self) -> str:
        return f"{self.story}: {self.fault.name} at {self.at}"


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    ending: Ending
    writes: int
    events: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    draw: Draw
    hit: str
    """What the fault fell on; "" if the story had ended before."""
    wrong: Sequence[str]
    seconds: float

    def __str__(self) -> str:
        return "\n    ".join([f"{self.draw}, {self.hit or 'not reached'}: {self.seconds:.0f} s", *self.wrong])


@dataclass
class Stage:
    """Where cases are played."""

    proxy: Proxy
    nature: Nature
    ears: "Ears"
    known: dict[str, Undisturbed] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TOGETHER))

    async def learn(self, stories: Iterable[str]) -> None:
        """How they end undisturbed."""

        async def one(name: str) -> None:
            async with self.turns:
                case, wrong = await self._play(name, Trouble())
            assert not wrong, f"{name}: {wrong}"
            ending = case.past.ending(case.namespace)
            self.known[name] = Undisturbed(ending=ending, writes=case.trouble.writes, events=case.trouble.events)

        await asyncio.gather(*map(one, stories))

    async def try_(self, draw: Draw) -> Outcome:
        began = time.monotonic()
        case, wrong = await self._play(draw.story, Trouble(draw.fault, draw.at))
        found = differences(case.past.ending(case.namespace), self.known[draw.story].ending, told=False)
        story = STORIES[draw.story]
        found = [line for line in found if story.either not in line]
        wrong += [line for line in found if not (line.startswith("told: ") and (INJECTED in line or not story.tells))]
        return Outcome(draw=draw, hit=case.trouble.hit, wrong=wrong, seconds=time.monotonic() - began)

    async def try_all(self, draws: Iterable[Draw]) -> AsyncIterator[Outcome]:
        """As they end."""

        async def one(draw: Draw) -> Outcome:
            async with self.turns:
                return await self.try_(draw)

        for done in asyncio.as_completed([asyncio.create_task(one(draw)) for draw in draws]):
            yield await done

    async def _play(self, name: str, trouble: Trouble) -> tuple[Case, list[str]]:
        """The case when all is over, and what was wrong but for its end."""
        story, namespace = STORIES[name], f"story-{next(NUMBERS):04}"
        self.nature.add(land := Land(namespace, ready=story.ready, holds=story.holds))
        case = Case(namespace, self.proxy, self.nature, trouble, land)
        await self.nature.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        wrong: list[str] = []
        try:
            if story.first or not story.act:
                case.operate()
            for step in story.first:
                await step.act(case)
                await case.rest()
            trouble.armed = True
            if not story.first:
                case.operate()
            await story.act(case)
            for step in story.then:
                await (case.until(step.after) if step.after else case.rest())
                await step.act(case)
            await case.rest()
        except TimeoutError:
            wrong.append("never comes to rest")
        except Exception:
            wrong.append(traceback.format_exc())
        finally:
            await case.end()
        return case, wrong + case.past.broken_promises() + self.ears.of(namespace)


@asynccontextmanager
async def stage(server: Running) -> AsyncIterator[Stage]:
    proxy, ears = Proxy(server), Ears()
    logging.getLogger("paceline").addHandler(ears)
    async with (
        await connect(str(server.kubeconfig), kinds=RECONCILED_KINDS, throttle=Throttle(1000, 1000)) as api,
        proxy.serving(),
        kubelets(api, server.certificate, NODES) as logs,
    ):
        nature = Nature(api, logs)
        tasks = [asyncio.create_task(reflector.run()) for reflector in nature.history.reflectors]
        tasks.append(asyncio.create_task(nature.queue.run(nature.look, workers=WORKERS)))
        try:
            for reflector in nature.history.reflectors:
                await reflector.synced.wait()
            yield Stage(proxy, nature, ears)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            logging.getLogger("paceline").removeHandler(ears)


class Ears(logging.Handler):
    """Hears what is logged as an error: a pass that raised what is no answer of the API is a bug."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(logging.Formatter().format(record))

    def of(self, namespace: str) -> list[str]:
        return [said for said in self.heard if f"/{namespace}/" in said]


def drawn(seed: int, story: str, known: Undisturbed, number: int) -> list[Draw]:
    """`number` cases of a story: every fault as often as any other, as far as it goes, at a random place."""
    dice = random.Random(f"{seed} {story}")
    faults = [fault for fault in (*OF_WRITES, *OF_WATCHES) if _most(known, fault)]
    order: list[Fault] = []
    while len(order) < number:
        dice.shuffle(faults)
        order += faults
    return [Draw(story, fault, dice.randint(1, _most(known, fault))) for fault in order[:number]]


def _most(known: Undisturbed, fault: Fault) -> int:
    return known.writes if isinstance(fault, WriteFault) else known.events
