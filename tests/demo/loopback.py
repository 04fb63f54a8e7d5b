"""The demo's two questions asked again and again without a cluster: `python -m tests.demo.loopback --times 10`.

Each is measured by `paceline measure --emulated`. All runs are added to tests/gate/recorded/loopback.jsonl.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.demo.record import RECORDED, keep
from tests.support.overlay import EXAMPLE, OVERLAY, merged

from paceline.cli.options import EXIT
from paceline.measure.record import load_run

POOLS = ("latency", "throughput")


def measured(pool: str, directory: Path) -> Mapping[str, Any]:
    """The pool's run with its verdict. Raises SystemExit if there is none, or if a point was not valid."""
    question, output = directory / "question.yaml", directory / "run.yaml"
    demo = merged(yaml.safe_load(EXAMPLE.read_text()), yaml.safe_load(OVERLAY.read_text()))
    question.write_text(yaml.safe_dump(demo))
    program = [sys.executable, "-m", "paceline.cli", "measure", str(question), "--pool", pool, "--emulated"]
    code = subprocess.run([*program, "-o", str(output)], check=False).returncode
    if code not in (EXIT["Promote"], EXIT["Reject"], EXIT["Inconclusive"]):
        raise SystemExit(code)
    run = load_run(output)
    assert run
    points = [point for entry in run["rounds"] for point in entry.get("points", ())]
    if wrong := [f"{one['arm']} on {one['workload']}: {one['why']}" for one in points if not one["valid"]]:
        raise SystemExit("\n".join(wrong))
    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    for number in range(parser.parse_args().times):
        for pool in POOLS:
            with tempfile.TemporaryDirectory() as directory:
                run = measured(pool, Path(directory))
            keep([run], RECORDED / "loopback.jsonl")
            status = run["status"]
            print(number + 1, pool, status["verdict"]["outcome"], len(run["rounds"]), status["noise"], flush=True)
