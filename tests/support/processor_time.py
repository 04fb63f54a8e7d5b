"""How long a command takes of the processor, for limits that hold on slow and on busy machines.

An absolute limit fails where the machine is slower, or where a neighbour shares the core. So a limit is a multiple of
what another command takes here and now, and each is the best of several runs.
"""

import resource
import subprocess
import sys
from collections.abc import Sequence

RUNS = 3


def least_seconds(*args: str, codes: Sequence[int] = (0,)) -> float:
    """Seconds of the processor, user and system, of `python ARGS`: the least of three runs."""
    return min(_seconds(args, codes) for _ in range(RUNS))


def _seconds(args: Sequence[str], codes: Sequence[int]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, *args], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode in codes, ended.stderr.decode()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
