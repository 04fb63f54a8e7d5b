"""`python -m paceline.pods.round`: run the round in PACELINE_ROUND.

Exit code 0: the log has a result, even if every arm failed. 1: the termination message is a sentence about the failure
of the round itself.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from paceline.core import Arrivals
from paceline.engines import ENGINES
from paceline.evidence import ENVIRONMENT, RoundPlan, encode
from paceline.pods.round import keys, load
from paceline.pods.round.control import Control, keep_beating
from paceline.pods.round.runner import Runner, say

CONTROL_DIRECTORY = "PACELINE_CTL"
_MESSAGE_PATH = "PACELINE_TERMINATION_LOG"
LONGEST_SENTENCE = 2048
"""Bytes; the kubelet keeps 12 KiB of a pod's messages."""


def main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    server_keys = keys.read_keys(os.environ)
    control = Control(Path(os.environ.get(CONTROL_DIRECTORY, "/ctl")), server_keys)
    message = Path(os.environ.get(_MESSAGE_PATH, "/dev/termination-log"))
    try:
        keep_beating(control)
        plan = RoundPlan.from_json(os.environ[ENVIRONMENT])
        check_arms(plan)
        control.wait_for_wrapper(plan.start_timeout_seconds)
        with tempfile.TemporaryDirectory(prefix="paceline-") as scratch:
            say(encode(Runner(plan, control, Path(scratch)).run()))
    except Exception as error:  # any failure must leave a message for the operator
        text = server_keys.fit_to_show(f"the round failed: {type(error).__name__}: {error}")
        say(text)
        message.write_bytes(text.encode()[:LONGEST_SENTENCE])
        return 1
    finally:
        control.done()
    return 0


def check_arms(plan: RoundPlan) -> None:
    """Check for problems of all arms before the first one takes a GPU."""
    if plan.engine not in ENGINES:
        raise ValueError(f"cannot measure {plan.engine}")
    for workload in plan.workloads:
        load.prompts_of_load(plan, workload)
        if workload.rate and workload.dataset.arrivals == Arrivals.REPLAYED:
            load.replayed(plan, workload, workload.rate)
    load.tools_are_taken(plan)
    if plan.parity:
        load.compared_prompts(plan)


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
