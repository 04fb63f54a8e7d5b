"""`make demo-kind`: the demo on a cluster of kind's, on a machine where no Docker runs and no registry answers.

Makes a node image from the programs of dev/cluster/build, starts a Docker daemon in a network namespace of its own,
then does what a user does: `make demo` with CLUSTER=kind, a node that stops, `make cluster-down`. Afterwards nothing of
it may be on the machine. Name, network and state are its own: it runs beside another cluster. Exit code 1 if a step
fails, a verdict is neither the published one nor, for noise, that there is none, or something is left.
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
from tests.demo.demos import MOST_NOISE, TABLE, faults, row, unexpected
from tests.support.reports import runs_of

NAME = os.environ.get("PACELINE_CLUSTER_NAME", "pace-kind")
STATE = Path(os.environ.get("PACELINE_STATE", f"/var/tmp/{NAME}-cluster"))
SETTINGS = {
    "CLUSTER": "kind",
    "PACELINE_KIND_IMAGE": "local",
    "PACELINE_CLUSTER_NAME": NAME,
    "PACELINE_NET": os.environ.get("PACELINE_NET", "10.247"),
    "PACELINE_STATE": str(STATE),
}
KIND = ("kind", "docker", "br-", "veth", "172.", "sysctls", NAME)
"""Words in what Docker, kind or a kubelet leaves on a machine. Others may be at work on it: the rest is not counted."""

SEEN = """\
Real: kind 0.33 and kubeadm; two nodes as Docker containers with systemd and containerd; kubelets,
scheduler, chart, operator, rounds. Emulated: engine, hub, GPUs. Unlike a usual kind: the nodes' image
is that of `dev/cluster/kind/image-node` (Debian's containerd, another pod network, our CoreDNS), and
Docker is Debian's ([the local cluster](../cluster.md#with-kind)).

The machine's mounts, links, routes, cgroups, iptables, sysctls and directories were compared before
and after: what Docker or kind left would stand above. Other work may have made this slower.
"""


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    """`…` stands for `dev/cluster/kind/docker run`."""
    what: str


PREPARED = (
    Step("make prepare", "programs, virtual environment, images of Paceline"),
    Step("dev/cluster/kind/image-node", "the nodes' image"),
)
RUN = (
    Step("dev/cluster/kind/docker start", "a Docker daemon"),
    Step("… make demo", "cluster, operator, both verdicts, both served"),
    Step("… make cluster-up", "with a cluster that is up"),
)
DEMO = RUN[1]
BROKEN = (
    Step(f"… docker stop {NAME}-worker", "a node stops"),
    Step("… make cluster-up", "and is back"),
)
LAST = (
    Step("… make cluster-down", "containers and network are removed"),
    Step("dev/cluster/kind/docker stop", "the daemon stops, its images are removed"),
)
"""Whatever went wrong before."""


@dataclass(slots=True)
class Account:
    """What was done, and what was seen. After the first thing wrong nothing more is done."""

    rows: list[str] = field(default_factory=list)
    seconds: float = 0.0
    demo: float = 0.0
    """Seconds, by its own words, from the first `apply` to the end."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def do(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if not self.wrong:
                self.one(step)

    def one(self, step: Step) -> None:
        print(f"## {step.command}", flush=True)
        started = time.monotonic()
        code, said = run(step.command.replace("…", "dev/cluster/kind/docker run").split())
        took = time.monotonic() - started
        self.seconds += took
        self.rows.append(f"| `{step.command}` | {step.what} | {clock(took)} |")
        if code:
            self.wrong.append(f"`{step.command}`: exit code {code}")
        if found := re.search(r"^Done in (\d+):(\d\d)", said, re.MULTILINE):
            self.demo = 60.0 * int(found[1]) + int(found[2])


def main(target: Path | None) -> int:
    account = Account()
    account.do(PREPARED)
    before = machine()
    try:
        account.do(RUN)
        if not account.wrong:
            account.runs = measured()
            account.wrong += [words for found in account.runs if not drowned(found) for words in unexpected(found)]
        account.do(BROKEN)
    finally:
        for step in LAST:
            account.one(step)
    account.wrong += [f"left on the machine: {line}" for line in left(before, machine())]
    told = report(account)
    print(told)
    if target:
        target.write_text(told)
    return 1 if account.wrong else 0


def run(command: Sequence[str]) -> tuple[int, str]:
    """Its exit code and output, which is shown as it comes."""
    said = []
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | SETTINGS, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    return process.returncode, "".join(said)


def measured() -> list[dict[str, Any]]:
    """The runs of the demo. Not by tests.support.kubernetes: the API is on a loopback of its own."""
    kubectl = f"{KUBECTL} --kubeconfig {STATE}/kubeconfig --namespace paceline-demo get bench,benchround --output json"
    command = ["dev/cluster/kind/docker", "run", *kubectl.split()]
    asked = subprocess.run(command, cwd=ROOT, env=os.environ | SETTINGS, capture_output=True, check=True)
    return runs_of(json.loads(asked.stdout)["items"])


def drowned(run: dict[str, Any]) -> bool:
    """On a machine that is not quiet the gate may say that it cannot tell, which is right, and is in the report."""
    return bool(run["status"]["verdict"]["outcome"] == "Inconclusive" and float(run["status"]["noise"]) > MOST_NOISE)


def left(before: Machine, after: Machine) -> list[str]:
    """What is there and was not; a sysctl that was changed is there with another value."""
    new = (line for line in differences(before, after) if line.startswith("+"))
    return [line for line in new if any(word in line for word in KIND)]


def report(account: Account) -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seen = [words for found in account.runs for words in faults(found)]
    return "\n".join(
        [
            "# The demo on kind",
            "",
            f"Written by `make demo-kind` on {datetime.now(UTC):%Y-%m-%d} at commit {asked.stdout.strip()},",
            f"{os.cpu_count()} processors ({platform.machine()}), Linux {platform.release()}, "
            f"{clock(account.seconds)} minutes: {'not as' if account.wrong else 'as'} expected.",
            "",
            *(f"* {line}" for line in account.wrong),
            *([""] if account.wrong else []),
            "| command | | minutes |",
            "|---|---|---|",
            *account.rows,
            "",
            "`…` is `dev/cluster/kind/docker run`. The demo by itself, from the first `apply` on, as in",
            "[demos](demos.md):",
            "",
            *TABLE,
            *([row(1, account.runs, account.demo, seen)] if account.runs else []),
            "",
            SEEN,
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the report")
    sys.exit(main(parser.parse_args().write))
