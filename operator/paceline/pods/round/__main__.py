"""`python -m paceline.pods.round`: run the round in PACELINE_ROUND, beside the containers of its arms.

The log has the result, even if every arm failed; or `conclude` ends with 1 and a sentence about the failure of the
round itself. This process goes on until SIGTERM: the kubelet would restart a sidecar that ends.
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
from paceline.pods.round import control, keys, load
from paceline.pods.round.runner import Runner, say


def main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    server_keys = keys.read_keys(os.environ)
    directory = control.control_directory()
    code, message = 0, ""
    try:
        if not control.begin(directory):
            raise RuntimeError("its client has ended, and was started again")
        plan = RoundPlan.from_json(os.environ[ENVIRONMENT])
        check_arms(plan)
        plan = load.with_prompts_to_compare(plan)
        with tempfile.TemporaryDirectory(prefix="paceline-") as scratch:
            say(encode(Runner(plan, directory, server_keys, Path(scratch)).run()))
    except Exception as error:  # any failure must leave a message for the operator
        message = server_keys.fit_to_show(f"the round failed: {type(error).__name__}: {error}")
        say(message)
        code = 1
    control.end_round(directory, code, message)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        signal.pause()


def check_arms(plan: RoundPlan) -> None:
    """Check for problems of all arms before the first one takes a GPU."""
    for arm in plan.arms:
        if arm.engine not in ENGINES:
            raise ValueError(f"{arm.name}: cannot measure {arm.engine}")
    for workload in plan.workloads:
        load.prompts_of_load(plan, workload)
        if workload.rate and workload.dataset.arrivals == Arrivals.REPLAYED:
            load.replayed(plan, workload, workload.rate)
    load.tools_are_taken(plan)


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
