"""All failures of a round or of one of its servers. A failure says nothing about a candidate's speed, but repeated
failures of only its servers show that they are unreliable (docs/gate.md).

`plan/run/ends.py` finds failures of pods and Jobs, `of_server` failures of a server within a round.
"""

import re
from dataclasses import dataclass
from enum import Enum, unique

ONCE, FEW, MANY = 1, 3, 20
"""A run ends after this many consecutive tries without a result: ONCE for causes that cannot change, FEW for possible
bad luck, MANY for causes in the cluster."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """The failure in a sentence, and the number of consecutive tries after which a run ends."""

    message: str
    tries: int


@unique
class Failure(Enum):
    """The name is the reason in status."""

    ServerArguments = FailureKind("a server refused its arguments (exit code 2)", ONCE)
    ImagePull = FailureKind("an image could not be pulled, or a container not created", FEW)
    OutOfMemory = FailureKind("a server ran out of GPU memory or node memory", FEW)
    StartTimeout = FailureKind("a server was not ready in time", FEW)
    TimedOut = FailureKind("a workload or the whole round took too long", FEW)
    ServerCrashed = FailureKind("a server, its container or an init container exited", FEW)
    Retracted = FailureKind("a server retracted requests because memory ran out", FEW)
    Malformed = FailureKind("a server's answers did not have the form that responseFormat asks for", FEW)
    RequestsFailed = FailureKind("a server ran, but requests to it failed", FEW)
    NotMeasured = FailureKind("a server ran, but its results are not valid", FEW)
    ClientFailed = FailureKind("Paceline's client failed or stopped responding", FEW)
    ClientBusy = FailureKind("Paceline's client was too busy to measure", FEW)
    ImageMoved = FailureKind("the server ran from another image than in earlier rounds: its tag has moved", ONCE)
    Unreadable = FailureKind("a round of another release, or an answer that cannot be read", FEW)
    Preempted = FailureKind("the scheduler gave the round's place to a pod of higher priority", MANY)
    Evicted = FailureKind("the round's pod was evicted or deleted", MANY)
    JobDeleted = FailureKind("the round's Job was deleted before its result was read", MANY)
    NodeLost = FailureKind("the round's node disappeared", MANY)
    NodeRefused = FailureKind("the node's kubelet refused the round's pod: its devices, capacity or topology", MANY)
    NotStarted = FailureKind("the round's containers were not started: a volume, or the pod's network", FEW)
    VolumeInUse = FailureKind("a volume of the round is attached to another node", MANY)

    @property
    def tries(self) -> int:
        return self.value.tries


VOIDS_THE_RUN = frozenset({Failure.ImageMoved})
"""Failures after which no verdict is possible: the earlier rounds measured something else (0017)."""

BLAMES_THE_SERVER = frozenset({
    Failure.ServerCrashed, Failure.OutOfMemory, Failure.Retracted, Failure.TimedOut, Failure.StartTimeout,
    Failure.RequestsFailed, Failure.Malformed,
})  # fmt: skip
"""Failures that count against a candidate if the baseline runs on the same accelerators without them; a single failure
may be bad luck. They include a hanging server, which the client ends. If the client were to blame for a failed request,
requests to the baseline would fail as well: the gate offsets one against the other."""

BREAKS_THE_SERVER = BLAMES_THE_SERVER | {Failure.ServerArguments, Failure.ImagePull}
"""Failures that count against the baseline of a changed spec if what serves lived in that round, and the other way
round: each is what the other is measured by, so neither is merely asked wrongly."""

ARGUMENTS = 2
"""argparse's exit code for invalid arguments."""
MEMORY = re.compile(
    r"out of memory|not enough memory|outofmemory|OOMKilled|cannot allocate memory|std::bad_alloc", re.IGNORECASE
)
"""Messages of PyTorch, the engines, the kubelet, the kernel and the C++ library about lack of memory, which no exit
code shows."""


def of_server(exit_code: int | None, error: str, seen: Failure | None = None) -> Failure | None:
    """Why a server failed; None if it did not.

    `exit_code`: if it ended by itself; `error`: the last useful line about it; `seen`: a failure that only the round's
    client saw, such as a timeout.
    """
    if exit_code == ARGUMENTS:
        return Failure.ServerArguments
    if MEMORY.search(error):
        return Failure.OutOfMemory
    if exit_code is not None:
        return Failure.ServerCrashed
    return seen or (Failure.NotMeasured if error else None)
