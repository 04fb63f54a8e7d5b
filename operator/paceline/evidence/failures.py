"""What goes wrong with a round or with one of its servers: a closed list. None of it says how fast a candidate is; what
happens to its servers alone, again and again, says that they are not to be relied on (docs/gate.md).

How a pod or a Job shows it is read in `plan/run/ends.py`; what the client of a round noted of a server, here.
"""

import re
from dataclasses import dataclass
from enum import Enum, unique

ONCE, FEW, MANY = 1, 3, 20
"""Tries in a row without a result after which a run ends: what cannot change; what may be bad luck; what the cluster
does for its own reasons."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What happened, in a sentence, and after how many tries of that patience in a row a run ends."""

    message: str
    tries: int


@unique
class Failure(Enum):
    """The name is the reason in status."""

    ServerArguments = Kind("a server refused its arguments (exit code 2)", ONCE)
    ImagePull = Kind("an image could not be pulled, or a container not be made", FEW)
    OutOfMemory = Kind("a server ran out of the GPUs' memory or the node's", FEW)
    StartTimeout = Kind("a server was not ready in time", FEW)
    TimedOut = Kind("a workload or the whole round took too long", FEW)
    ServerCrashed = Kind("a server, its container or one that runs before it ended by itself", FEW)
    Retracted = Kind("a server took requests back because memory ran out", FEW)
    RequestsFailed = Kind("a server ran, but requests to it failed", FEW)
    NotMeasured = Kind("a server ran, but its results are not valid", FEW)
    ClientFailed = Kind("Paceline's client failed or stopped responding", FEW)
    ImageMoved = Kind("the server ran from another image than in the rounds before: its tag has moved", ONCE)
    Unreadable = Kind("a round of another release, or an answer that cannot be read", FEW)
    Preempted = Kind("the scheduler took the round's place for a pod of a higher priority", MANY)
    Evicted = Kind("the round's pod was evicted or deleted", MANY)
    NodeLost = Kind("the round's node went away", MANY)
    NodeRefused = Kind("the node's kubelet refused the round's pod: its devices, its room, its topology", MANY)
    NotStarted = Kind("the round's containers were not started: a volume, or the pod's network", FEW)
    VolumeInUse = Kind("a volume of the round is attached to another node", MANY)

    @property
    def tries(self) -> int:
        return self.value.tries


VOIDS_THE_RUN = frozenset({Failure.ImageMoved})
"""What leaves no verdict, whatever the rounds before have shown: that was of something else (0017)."""

BLAMES_THE_SERVER = frozenset({
    Failure.ServerCrashed, Failure.OutOfMemory, Failure.Retracted, Failure.TimedOut, Failure.StartTimeout,
    Failure.RequestsFailed,
})  # fmt: skip
"""What a candidate's own server comes to while the baseline's lives on the same accelerators: once may be luck. One
that hangs is ended by its client, and has not ended by itself; that is no less its own doing. A request that fails may
be the client's, whose requests to the baseline would then fail as well: the gate sets one off against the other."""

ARGUMENTS = 2
"""argparse's exit code: the arguments will be as wrong the next time."""
MEMORY = re.compile(
    r"out of memory|not enough memory|outofmemory|OOMKilled|cannot allocate memory|std::bad_alloc", re.IGNORECASE
)


def of_server(exit_code: int | None, error: str) -> Failure | None:
    """Of a server as a round's client saw it: its exit code if it ended by itself, and its last useful line. None if
    nothing was wrong."""
    if exit_code == ARGUMENTS:
        return Failure.ServerArguments
    if MEMORY.search(error):
        return Failure.OutOfMemory
    if exit_code is not None:
        return Failure.ServerCrashed
    if error.startswith("not ready after"):
        return Failure.StartTimeout
    if "timed out after" in error:
        return Failure.TimedOut
    return Failure.NotMeasured if error else None
