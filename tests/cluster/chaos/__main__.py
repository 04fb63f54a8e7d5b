"""`make chaos`: every scenario of the table, each with its seeds, and docs/reports/chaos.md.

`python -m tests.cluster.chaos [NAME…] [--seed N]`: only these, beginning with another seed. What was found is added to
build/chaos.json, by scenario and seed; the report is written of all that is there. What runs beside what:
table.Lane.
"""

import argparse
import json
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from typing import Any

import pytest
from tests.cluster.chaos import report
from tests.cluster.chaos.machines import CLUSTER, ROOT
from tests.cluster.chaos.story import BrokenError, Story
from tests.cluster.chaos.table import SCENARIOS, Lane, Scenario
from tests.cluster.chaos.view import View, watching
from tests.cluster.conftest import HUB, namespace_for
from tests.support.kubernetes import MADE_BY, OPERATOR, kubectl, run
from tests.support.processes import Operator

TOGETHER = 4
FOUND = ROOT / "build" / "chaos.json"
Found = dict[str, Any]


def one(scenario: Scenario, seed: int, hub: str, view: View) -> Found:
    began = time.monotonic()
    wrong = ""
    with namespace_for(f"chaos-{scenario.name}", may_be_gone=True) as here:
        story = Story(here, hub, view, random.Random(f"{scenario.name} {seed}"))
        try:
            scenario.act(story)
        except BrokenError as broken:
            wrong = str(broken)
            keep(story, scenario, seed)
        except (Exception, pytest.fail.Exception):
            wrong = traceback.format_exc()
            keep(story, scenario, seed)
        time.sleep(1)
        tracebacks = [line for line in view.lines(began) if line.startswith("Traceback")]
        if tracebacks:
            wrong += f"; {len(tracebacks)} tracebacks in the operator's log"
            keep(story, scenario, seed)
    if scenario.lane in (Lane.OPERATOR, Lane.CLUSTER):
        Operator().replace()  # a pod that does not wait out its restarts
    found = {
        "scenario": scenario.name,
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "notes": story.notes,
        "wrong": wrong,
        "commit": commit(),
    }
    print(json.dumps(found), flush=True)
    return found


def keep(story: Story, scenario: Scenario, seed: int) -> None:
    """What there was, for whoever looks why."""
    place = ROOT / "build" / "chaos" / f"{scenario.name}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    kinds = "specdep,bench,jobs,pods,deployments,services,events"
    (place / "objects.yaml").write_text(run("--namespace", story.here.name, "get", kinds, "-o", "yaml").stdout)
    (place / "operator.log").write_text("\n".join(story.view.lines(0)))


def commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def volumes() -> None:
    """Those of namespaces that are gone are usable again."""
    subprocess.run([CLUSTER / "volumes"], check=False, capture_output=True, timeout=120)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(SCENARIOS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=TOGETHER)
    parser.add_argument("--seeds", type=int, default=9, help="at most so many of each")
    options = parser.parse_args(argv)
    if MADE_BY != "own":
        parser.error(f"nodes of the own cluster are stopped and cut off here; this one was made with CLUSTER={MADE_BY}")
    chosen = [SCENARIOS[name] for name in options.names or SCENARIOS]
    runs = [(one, options.seed + number) for one in chosen for number in range(min(one.seeds, options.seeds))]
    FOUND.parent.mkdir(exist_ok=True)
    kubectl("--namespace", OPERATOR, "rollout", "status", "deployment/paceline", "--timeout", "60s")
    found: list[Found] = []
    with namespace_for("chaos-hub") as home, watching() as view:
        home.kubectl("apply", "-f", str(HUB))
        home.kubectl("rollout", "status", "deployment/hub", "--timeout", "60s")
        hub = f"http://hub.{home.name}.svc"
        volumes()
        with ExitStack() as pools:
            many = {Lane.OWN: options.together, Lane.OPERATOR: 1, Lane.NODE: 1}
            lanes = {lane: pools.enter_context(ThreadPoolExecutor(number)) for lane, number in many.items()}
            first = [each for each in runs if each[0].lane in lanes]
            under_way = [lanes[one_of.lane].submit(one, one_of, seed, hub, view) for one_of, seed in first]
            for result in as_completed(under_way):
                found.append(result.result())
                add(found)
        for scenario, seed in (each for each in runs if each[0].lane is Lane.CLUSTER):
            volumes()
            found.append(one(scenario, seed, hub, view))
            add(found)
    report.write(json.loads(FOUND.read_text()))
    wrong = [f"{each['scenario']} {each['seed']}: {each['wrong']}" for each in found if each["wrong"]]
    print("\n".join([*wrong, f"{len(found) - len(wrong)} of {len(found)} converged"]))
    return 1 if wrong else 0


def add(found: Sequence[Found]) -> None:
    known = json.loads(FOUND.read_text()) if FOUND.exists() else []
    fresh = {(each["scenario"], each["seed"]) for each in found}
    kept = [each for each in known if (each["scenario"], each["seed"]) not in fresh]
    FOUND.write_text(json.dumps([*kept, *found], indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
