"""`make demo-killed`: the demo, with the operator killed (SIGKILL) at the three moments when it might lose something.

A run exists and none of its Jobs does (a quota holds them back); a point is being measured; a Job is complete and its
result not yet in status (the operator is frozen until then). The outcome must be the demo's, and no round run twice.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.demo.demo import Cluster, demo
from tests.demo.demos import clear, faults
from tests.support.kubernetes import Manifest, Namespace
from tests.support.processes import Operator
from tests.support.queries import QUOTA, RUN, complete, jobs_of, measuring, name_of

NAMESPACE = "demo-killed"
T = TypeVar("T")


def main() -> int:
    for left in (NAMESPACE, "paceline-demo"):  # two demos at a time do not fit 16 GPUs
        clear(left)
    here = Namespace(NAMESPACE)
    Cluster("default").run("create", "namespace", NAMESPACE)
    here.apply(QUOTA)
    killer = threading.Thread(target=kill_thrice, args=(here, Operator()), daemon=True)
    killer.start()
    code = demo(NAMESPACE, Path("/tmp/demo-killed.html"), limit=1800)
    killer.join(timeout=1)
    runs = here.list("bench")
    wrong = [f"exit code {code}"] if code else [fault for run in runs for fault in faults(run)]
    wrong += ["the operator was not killed three times"] if killer.is_alive() else []
    wrong += [fault for run in runs for fault in repeated(here, run)]
    print("as expected" if not wrong else "; ".join(wrong))
    return 1 if wrong else 0


def kill_thrice(here: Namespace, operator: Operator) -> None:
    meant = eventually(lambda: [run for run in here.list("bench") if "progress" in run.get("status", {})])
    assert not [job for run in meant for job in jobs_of(here, run)]
    operator.kill()
    say("killed: a run exists, no Job of it")
    here.kubectl("delete", "resourcequota", "one-job")

    eventually(lambda: [run for run in here.list("bench") if measuring(here, run, 0)()])
    operator.kill()
    say("killed: inside a point")

    run = eventually(lambda: [run for run in here.list("bench") if measuring(here, run, 1)()])[0]
    operator.freeze()
    second = jobs_of(here, run)[1]
    eventually(lambda: complete(here.get("job", name_of(second))))
    assert len(here.get("bench", name_of(run))["rounds"]) == 1
    operator.kill()
    say(f"killed: {name_of(second)} is complete, its result not in status")


def eventually(look: Callable[[], T]) -> T:
    while not (found := look()):
        time.sleep(0.5)
    return found


def repeated(here: Namespace, run: Manifest) -> list[str]:
    tries = [(round["round"], round["try"]) for round in run["rounds"]]
    pods = here.list("pods", f"{RUN}={name_of(run)}")
    once = tries == [(number, 0) for number in range(len(tries))] and len(pods) == len(tries)
    return [] if once else [f"{name_of(run)}: rounds and tries {tries}, {len(pods)} pods"]


def say(what: str) -> None:
    print(f"------ the operator is {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
