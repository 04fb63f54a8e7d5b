"""What a round's pod held accelerators for, by a clock outside of it."""

import math
import time
from dataclasses import dataclass

from tests.support.in_status import round_status
from tests.unit.round.pod import PATIENCE, Outcome, Pod

from paceline.evidence import judge_points

FIVE_MINUTES = 300.0
MOST_IDLE = 0.1
"""Of the time that accelerators are held by a run with five-minute starts: neither start nor measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Seconds of one round. `said` is what its status calls idle."""

    whole: float
    starting: float
    measuring: float
    starts: int
    points: int
    said: float

    @property
    def idle(self) -> float:
        """All that is neither a start nor a measured workload: the client's own start and its requests for facts,
        warm-ups, flushes, the start of SGLang's client for every load, the end of servers."""
        return self.whole - self.starting - self.measuring


def finish(pod: Pod, began: float, patience: float = PATIENCE) -> tuple[Held, Outcome]:
    """The round to its end; `began` is the monotonic time before its pod was."""
    outcome = pod.finish(patience)
    whole = time.monotonic() - began
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    result = outcome.result
    judged = judge_points(outcome.plan, result)
    assert {one.why for one in judged} == {""}, outcome.log
    status = round_status(outcome.plan, result, judged, "job", "node", held_seconds=whole)
    held = Held(
        whole=whole,
        starting=math.fsum(one.start_seconds or 0.0 for one in result.replicates),
        measuring=math.fsum(point.duration or 0.0 for one in result.replicates for point in one.points),
        starts=len(result.replicates),
        points=len(judged),
        said=status["idleSeconds"],
    )
    return held, outcome
