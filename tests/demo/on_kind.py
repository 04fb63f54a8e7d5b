"""`make demo-kind`: the demo on a cluster of kind's, on a machine where no Docker runs and no registry answers.

Makes a node image from the programs of dev/cluster/build, starts a Docker daemon in a network namespace of its own, then
does what a user does: `make demo CLUSTER=kind`, again, with a node that was stopped, `make cluster-down`. Afterwards
nothing of it may be on the machine. Name, network and state are its own: it runs beside another cluster.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.cluster.machine import Machine, differences, machine
from tests.demo.demo import KUBECTL, ROOT, clock
from tests.demo.demos import faults, row

NAME = os.environ.get("PACELINE_CLUSTER_NAME", "pacekind")
STATE = Path(os.environ.get("PACELINE_STATE", f"/var/tmp/{NAME}-cluster"))
SETTINGS = {
    "CLUSTER": "kind",
    "PACELINE_KIND_IMAGE": "local",
    "PACELINE_CLUSTER_NAME": NAME,
    "PACELINE_NET": os.environ.get("PACELINE_NET", "10.247"),
    "PACELINE_STATE": str(STATE),
    "DOCKER_HOST": f"unix:///var/tmp/{NAME}-docker/socket",
}
DOCKER = "dev/cluster/kind/docker"
INSIDE = (DOCKER, "run")
KIND = ("kind", "docker", "br-", "veth", "172.", "sysctls", NAME)
"""What a line of the machine's state says, of what Docker, kind or a kubelet leaves there. Others may be at work."""


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    command: tuple[str, ...]


BEFORE = (
    Step("`make prepare`: programs, virtual environment, images of Paceline", ("make", "prepare")),
    Step("`kind/image-node`: the node image", ("dev/cluster/kind/image-node",)),
)
STEPS = (
    Step("`kind/docker start`: a Docker daemon", (DOCKER, "start")),
    Step("`make cluster-up`: two nodes, Ready, GPUs and TPUs allocatable", (*INSIDE, "make", "cluster-up")),
    Step("`make cluster-up` again", (*INSIDE, "make", "cluster-up")),
    Step("`make demo`: images loaded, operator installed, both verdicts, both served", (*INSIDE, "make", "demo")),
)
AFTER = (
    Step("`docker stop` of the worker", ("docker", "stop", f"{NAME}-worker")),
    Step("`make cluster-up`: the worker is back", (*INSIDE, "make", "cluster-up")),
    Step("`make cluster-down`", (*INSIDE, "make", "cluster-down")),
)
END = Step("`kind/docker stop`", (DOCKER, "stop"))


@dataclass(slots=True)
class Account:
    """What was done so far, and what was seen."""

    seconds: dict[str, float] = field(default_factory=dict)
    said: str = ""
    wrong: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def do(self, steps: Sequence[Step]) -> None:
        """Stops at the first that fails."""
        for step in steps:
            if self.wrong:
                return
            print(f"## {step.what}", flush=True)
            started = time.monotonic()
            code, self.said = run(step.command)
            self.seconds[step.what] = time.monotonic() - started
            print(f"## {clock(self.seconds[step.what])}", flush=True)
            if code:
                self.wrong.append(f"{step.what}: exit code {code}")


def run(command: Sequence[str]) -> tuple[int, str]:
    """Its output is shown as it comes."""
    said = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    return process.returncode, "".join(said)


def environment() -> dict[str, str]:
    unpacked = KUBECTL.parents[1] / "docker" / "usr"
    path = f"{os.environ['PATH']}:{unpacked}/sbin:{unpacked}/bin"
    return {**os.environ, **SETTINGS, "PATH": path}


def main(target: Path | None) -> int:
    account = Account()
    account.do(BEFORE)
    before = machine()
    try:
        account.do(STEPS)
        if not account.wrong:
            account.runs = measured()
            account.wrong += [fault for found in account.runs for fault in faults(found)]
            account.do(AFTER)
    finally:
        code, _ = run(END.command)
    account.wrong += [f"{END.what}: exit code {code}"] if code else []
    account.left = left(before, machine())
    account.wrong += [f"left on the machine: {line}" for line in account.left]
    told = report(account)
    print(told)
    if target:
        target.write_text(told)
    return 1 if account.wrong else 0


def measured() -> list[dict[str, Any]]:
    words = (*INSIDE, str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), "--namespace", "paceline-demo")
    asked = subprocess.run(
        (*words, "get", "bench", "--output", "json"), cwd=ROOT, env=environment(), capture_output=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(asked.stdout)["items"]
    return found


def left(before: Machine, after: Machine) -> list[str]:
    return [line for line in differences(before, after) if any(word in line for word in KIND)]


def report(account: Account) -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    done = clock(sum(account.seconds.values()))
    demo = re.search(r"Done in (\d+:\d\d)", account.said)
    return "\n".join(
        [
            "# The demo on kind",
            "",
            f"Written by `make demo-kind` on {datetime.now(UTC):%Y-%m-%d} at commit {asked.stdout.strip()}: {os.cpu_count()} processors,",
            f"{platform.machine()}, Linux {platform.release()}, {done} in all.",
            "",
            "| step | minutes |",
            "|---|---|",
            *(f"| {what} | {clock(seconds)} |" for what, seconds in account.seconds.items()),
            "",
            f"From the first `apply` to both verdicts, served: {demo[1] if demo else '-'}.",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the report")
    sys.exit(main(parser.parse_args().write))
