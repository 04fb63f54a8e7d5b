"""What goes wrong between an operator and the API server: the columns of the matrix of faults."""

import asyncio
import random
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tests.fault.forks import Mishap
from tests.fault.nature import JOB_SECONDS
from tests.fault.world import NAME, NAMESPACE, RESTART_SECONDS, Process, World
from tests.support.memory import Crash, conflict, lost

from paceline.controller.cluster import ObjectKey
from paceline.controller.health import SILENT_SECONDS
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.kube import ApiError, Invalid, Ref, TooManyRequests, Unavailable, WatchEvent
from paceline.kube.resources import SERVICE

REQUEST_SECONDS = 30.0
"""As long as the operator waits for an answer (`kube.transport`)."""
WATCH_SECONDS = 75.0
"""A watch ends by itself within that time (`kube.transport`)."""
ASKED_SECONDS = 20.0
"""Retry-After of a 429."""
SLACK_SECONDS = 10.0
"""For a few backoffs, and for who waits for its turn. Whoever gives up, and waits for the resync, takes minutes."""
REMADE_SECONDS = JOB_SECONDS + 5
"""As long as a Job that is made once more takes, with its pod."""
NUDGE_SECONDS = 60.0
LAG = 10
"""Versions that an API server's cache is behind."""


def raising(error: Callable[[], BaseException]) -> Callable[[World], None]:
    def act(_: World) -> None:
        raise error()

    return act


def invalid() -> ApiError:
    return Invalid(422, "Invalid", "injected: the object is refused")


def too_many() -> ApiError:
    return TooManyRequests(429, "TooManyRequests", "injected: try again later", retry_after=ASKED_SECONDS)


def broken() -> ApiError:
    return Unavailable(500, "InternalError", "injected: etcd has no leader")


async def never_answered(_: World) -> None:
    """Others go on while one waits."""
    await asyncio.sleep(REQUEST_SECONDS)
    raise Unavailable(0, "TimeoutError", "injected: no answer")


def missed(world: World, _: WatchEvent) -> tuple[()]:
    """This one never comes; when the watch has ended its place is no longer known, and all must be listed."""
    api = world.lives[-1].api
    world.later(WATCH_SECONDS, lambda _: api.expire())
    return ()


def twice(_: World, event: WatchEvent) -> tuple[WatchEvent, WatchEvent]:
    return (event, event)


def stale_list(world: World, event: WatchEvent) -> tuple[WatchEvent]:
    """All watches lose their place, and the lists that they then ask for are old ones."""
    api = world.lives[-1].api
    api.behind = LAG
    api.expire()

    def catch_up(_: World) -> None:
        api.behind = 0

    world.later(RESTART_SECONDS, catch_up)
    return (event,)


def relist_after_a_deletion(world: World, event: WatchEvent) -> tuple[WatchEvent]:
    """Somebody has deleted a Service, and no event will ever tell."""
    world.lives[-1].api.disconnect()
    for found in world.cluster.list(SERVICE).items:
        world.cluster.delete(Ref(SERVICE, NAMESPACE, found["metadata"]["name"]))
    world.cluster.compact()
    return (event,)


def silence(world: World, _: WatchEvent) -> tuple[()]:
    go_deaf(world)
    return ()


def go_deaf(world: World) -> None:
    """No watch tells anything, for as long as the probe allows; then what was missed is no longer known, and all must
    be listed. Meanwhile work goes on, on what the stores have."""
    process = world.lives[-1]
    process.api.deliver = lambda event: ()

    def heal(_: World) -> None:
        process.api.deliver = lambda event: (event,)
        world.cluster.compact()
        process.api.disconnect()

    nudge(process, SILENT_SECONDS)
    world.later(SILENT_SECONDS, heal)


def nudge(process: Process, seconds: float) -> None:
    """Hints without reason, for so long."""
    world = process.world
    runs = world.cluster.list(BENCHMARK_RUN).items
    keys = [ObjectKey(BENCHMARK_RUN.plural, NAMESPACE, run["metadata"]["name"]) for run in runs]
    keys += [ObjectKey(SPECULATIVE_DEPLOYMENT.plural, NAMESPACE, name) for name in (NAME, "stranger")]
    random.shuffle(keys)
    for key in keys:
        process.view.hear(key)
    if seconds > 0:
        world.later(NUDGE_SECONDS, lambda _: nudge(process, seconds - NUDGE_SECONDS))


def two_leaders(world: World, event: WatchEvent) -> tuple[WatchEvent]:
    """As when the one that has lost the Lease does not know yet."""
    world.operate()
    return (event,)


def lease_lost(world: World, event: WatchEvent) -> tuple[WatchEvent]:
    """It ends at once, wherever its passes are, and the next one begins."""
    world.lives[-1].deposed.set()
    return (event,)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What a fault may leave beside the end that should be: how a line of `differences` may begin, as patterns."""

    may: tuple[str, ...] = ()
    told: bool = False
    """Every Event that should be told is."""
    late: float = 0.0
    """Seconds by which the operator may come to rest later, beside SLACK_SECONDS."""


UNTOLD = Trace()
"""Events are told once a status is known to be written: an operator that has not heard so tells nothing."""
RESTARTED = Trace(late=RESTART_SECONDS)
UNANSWERED = Trace(late=REQUEST_SECONDS)
ANSWERED = Trace(may=("told: ",), told=True)
"""It tells what it was answered."""
PULL = f"models/{NAME}-latency-pull-"
REFUSED = Trace(
    may=("told: ", *(f"{what}: {kind} {PULL}" for what in ("never made", "not removed") for kind in ("Job", "Pod"))),
    told=True,
)
"""Who may not pull an image beforehand goes on without (tests/plan/test_pull.py)."""
MADE_AGAIN = Trace(may=("made 1 times: Service ", "removed 1 times: Service ", "told: "))
AGAIN_TWICE = ("made 2 times: Service ", "removed 2 times: Service ")

BY_AN_OLD_LIST = Trace(
    may=(
        *(f"{what} 1 times: {kind} models/{NAME}-fetch-" for what in ("made", "removed") for kind in ("Job", "Pod")),
        rf"BenchmarkRound \S+\.neighbours: \['models/{NAME}-latency-\w+-\d+ \(4\)'\] instead of None",
    ),
    late=REMADE_SECONDS,
)
"""A prefetch that has ended, and whose pod an old list lacks, is made again, and finds the models there. A server that
was lent, and that an old list still has, is named as a neighbour of the round that has its accelerators. A real API
server's lists are not old where no version is asked for, and we ask for none."""

CRASH = Mishap(what="crash after", when="after", do=raising(Crash))
LOST = Mishap(what="response lost", when="after", do=raising(lost))
CONFLICT = Mishap(what="409", when="before", do=raising(conflict))

AT_WRITES: Mapping[Mishap, Trace] = {
    Mishap(what="crash before", when="before", do=raising(Crash)): RESTARTED,
    CRASH: RESTARTED,
    LOST: UNTOLD,
    CONFLICT: Trace(told=True),
    Mishap(what="422", when="before", do=raising(invalid)): REFUSED,
    Mishap(what="429", when="before", do=raising(too_many)): Trace(told=True, late=ASKED_SECONDS),
    Mishap(what="500", when="before", do=raising(broken)): ANSWERED,
    Mishap(what="time-out before", when="before", do=never_answered): UNANSWERED,
    Mishap(what="time-out after", when="after", do=never_answered): UNANSWERED,
}
AT_EVENTS: Mapping[Mishap, Trace] = {
    Mishap(what="stale list", when="heard", do=stale_list): BY_AN_OLD_LIST,
    Mishap(what="missed event", when="heard", do=missed): Trace(late=WATCH_SECONDS),
    Mishap(what="event twice", when="heard", do=twice): Trace(told=True),
    Mishap(what="410 after a deletion", when="heard", do=relist_after_a_deletion): MADE_AGAIN,
    Mishap(what="silence", when="heard", do=silence): Trace(late=SILENT_SECONDS),
    Mishap(what="two leaders", when="heard", do=two_leaders): UNTOLD,
    Mishap(what="lease lost", when="heard", do=lease_lost): RESTARTED,
}
SINGLE = {**AT_WRITES, **AT_EVENTS}


def pairs(seed: str, number: int) -> dict[Mishap, Trace]:
    """So many of all pairs of faults, the second some steps after the first; always the same ones of a seed."""
    dice = random.Random(seed)
    found = dice.sample(list(product(SINGLE, SINGLE)), number)
    return {
        replace(one, what=f"{one}, then {two}", then=two, later=dice.randint(1, 6)): Trace(
            may=(
                *SINGLE[one].may,
                *SINGLE[two].may,
                *(AGAIN_TWICE if SINGLE[one] is SINGLE[two] is MADE_AGAIN else ()),
            ),
            late=SINGLE[one].late + SINGLE[two].late,
        )
        for one, two in found
    }


def drawn(name: str, step: int, every: int) -> bool:
    """One of `every` steps, always the same ones of a name."""
    return zlib.crc32(f"{name} {step}".encode()) % every == 0


def lateness(seconds: float, most: float) -> Iterator[str]:
    """What is wrong with coming to rest so many seconds later than without faults."""
    if seconds > most + SLACK_SECONDS:
        yield f"came to rest {seconds:.0f} s later, where {most + SLACK_SECONDS:.0f} are allowed"


def without(lines: list[str], trace: Trace) -> Iterator[str]:
    """What is wrong beyond what a fault may leave."""
    return (line for line in lines if not re.match("|".join(trace.may) or "\0", line))
