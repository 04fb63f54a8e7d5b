"""`python -m paceline.pods.round`: run the round in PACELINE_ROUND.

Exit code 0: the termination message holds a result, even one in which every arm failed. 1: it holds what went wrong
with the round itself.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from paceline.engines import ENGINES
from paceline.evidence import ENVIRONMENT, AnswerError, RoundPlan, encode
from paceline.pods.round import keys, load, rust
from paceline.pods.round.control import Control, WrapperError, keep_beating
from paceline.pods.round.room import Room, say

CONTROL = "PACELINE_CTL"
MESSAGE = "PACELINE_TERMINATION_LOG"


def main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    control = Control(Path(os.environ.get(CONTROL, "/ctl")), keys.read(os.environ))
    message = Path(os.environ.get(MESSAGE, "/dev/termination-log"))
    try:
        keep_beating(control)
        plan = RoundPlan.from_json(os.environ[ENVIRONMENT])
        check(plan)
        control.wait_for_wrapper(plan.start_timeout_seconds)
        with tempfile.TemporaryDirectory(prefix="paceline-") as scratch:
            message.write_text(encode(Room(plan, control, Path(scratch)).run()))
    except (AnswerError, WrapperError, OSError, ValueError, KeyError, TypeError) as error:
        text = f"the round failed: {type(error).__name__}: {error}"
        say(text)
        message.write_text(text[:4096])
        return 1
    finally:
        control.done()
    return 0


def check(plan: RoundPlan) -> None:
    """What every arm would fail on is found out before the first one takes a GPU."""
    if plan.engine not in ENGINES:
        raise ValueError(f"cannot measure {plan.engine}")
    rust.extension()
    for workload in plan.workloads:
        load.prompts(plan, workload)
    if plan.parity:
        load.compared_prompts(plan)
    tokenizer = Path(plan.tokenizer) / "tokenizer.json"
    if not tokenizer.is_file():
        raise FileNotFoundError(f"the benchmark client needs {tokenizer}")


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
