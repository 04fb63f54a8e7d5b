"""`make demo`: examples/qwen3-coder-next.yaml from nothing to two promoted pools, on the local cluster, emulated.

Applies the example through tests/demo/overlay.yaml, tells what happens, prints the table, writes report.html and leaves
everything running. Exit code 0 once every pool has a verdict and serves what it says, 1 if that does not come about.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.support.overlay import EXAMPLE, OVERLAY, merged

from paceline.api.round import with_rounds
from paceline.cli.render import Plain

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("PACELINE_STATE", "/var/tmp/paceline-cluster"))
KUBECTL = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline")) / "bin" / "kubectl"

PUBLISHED = {
    ("latency", "wide"): {"swe": 1.52, "code": 1.39, "terminal": 1.39, "chat": 1.18},
    ("throughput", "wide"): {"chat": 1.31, "swe": 1.09, "code": 1.03, "terminal": 0.89},
    ("throughput", "narrow"): {"chat": 1.10, "terminal": 1.03, "code": 1.01, "swe": 1.00},
}
"""thoughtworks/Qwen3-Coder-Next-Eagle3: SWEBench-Verified, HumanEval, Terminal-Bench, MT-Bench at batch 1 and 32."""


LABEL = "paceline-demo"
"""Of the namespaces of demos: the tests of the cluster delete them, as they need their GPUs."""


class Cluster:
    """kubectl in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.base = [str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), "--namespace", namespace]

    def run(self, *args: str, feed: str | None = None) -> str:
        done = subprocess.run([*self.base, *args], input=feed, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, kind: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.run("get", kind, "-o", "json"))["items"]
        return items

    def runs(self) -> list[dict[str, Any]]:
        """With their rounds."""
        rounds = self.get("benchround")
        return [with_rounds(run, rounds) for run in self.get("bench")]


def demo(namespace: str, report: Path, limit: float) -> int:
    started, cluster = time.monotonic(), Cluster(namespace)
    overlay = yaml.safe_load(OVERLAY.read_text())
    print(f"# The overlay over {EXAMPLE.relative_to(ROOT)}:\n{yaml.dump(overlay, Dumper=Plain, sort_keys=False)}")
    cluster.run("apply", "-f", "-", feed=yaml.safe_dump(namespace_of(namespace)))
    cluster.run("apply", "-f", str(ROOT / "dev" / "hub.yaml"))
    cluster.run("rollout", "status", "deployment/hub", "--timeout", "120s")
    resource = merged(yaml.safe_load(EXAMPLE.read_text()), overlay)
    cluster.run("apply", "-f", "-", feed=yaml.dump(resource, Dumper=Plain, sort_keys=False))
    name = resource["metadata"]["name"]
    told: set[str] = set()
    while time.monotonic() - started < limit:
        deployment = next(item for item in cluster.get("specdep") if item["metadata"]["name"] == name)
        runs = cluster.get("bench")
        for line in story(deployment, runs):
            if line not in told:
                told.add(line)
                print(f"{clock(time.monotonic() - started)}  {line}", flush=True)
        if stalled := condition(deployment, "Stalled"):
            print(f"Stalled: {stalled['message']}")
            return 1
        if settled(deployment):
            return conclude(cluster, namespace, name, runs, report, time.monotonic() - started)
        time.sleep(2)
    print(f"not settled after {clock(limit)}; see: kubectl -n {namespace} describe specdep {name}")
    return 1


def namespace_of(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LABEL: "true"}}}


def story(deployment: Mapping[str, Any], runs: list[dict[str, Any]]) -> Iterator[str]:
    """What there is to tell now; a line is printed the first time it comes up."""
    for kind in ("CacheReady", "Reconciling"):
        if found := condition(deployment, kind, status=None):
            yield f"{kind}={found['status']}: {found['message']}"
    for pool in (deployment.get("status") or {}).get("pools", ()):
        if serving := pool.get("serving"):
            yield f"{pool['name']}: {serving['arm']} is served (revision {serving['revision']})"
    for run in runs:
        progress = (run.get("status") or {}).get("progress") or {}
        if progress.get("step") == "Measuring":
            yield f"{run['spec']['pool']}: {progress['message']}{left(run)}"
    for pool in (deployment.get("status") or {}).get("pools", ()):
        if verdict := pool.get("verdict"):
            yield f"{pool['name']}: {verdict['outcome']}: {verdict['message']}"


def left(run: Mapping[str, Any]) -> str:
    """Until the next look of the gate, from the rounds so far."""
    progress = run["status"]["progress"]
    each, done = progress.get("secondsPerRound"), progress.get("round", 0)
    ahead = [look for look in run["spec"]["gate"]["decideAfterRounds"] if look > done]
    return f" (about {clock((ahead[0] - done) * each)} to the gate's next look)" if each and ahead else ""


def settled(deployment: Mapping[str, Any]) -> bool:
    """Every pool has a verdict, and serves what it says."""
    status = deployment.get("status") or {}
    pools = status.get("pools", ())
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and condition(deployment, "Ready")
        and not condition(deployment, "Reconciling")
        and len(pools) == len(deployment["spec"]["pools"])
        and all(
            "verdict" in pool and pool["serving"]["revision"] == pool["internal"]["target"]["revision"]
            for pool in pools
        )
    )


def conclude(
    cluster: Cluster, namespace: str, name: str, runs: list[dict[str, Any]], report: Path, seconds: float
) -> int:
    print(f"\n{table(runs)}\n")
    print(cluster.run("get", "specdep", name))
    print(cluster.run("get", "bench"))
    listing = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*runs, *cluster.get("benchround")]})
    command = [sys.executable, "-m", "paceline.cli", "report", "-", "-o", str(report)]
    subprocess.run(command, input=listing, text=True, check=True, cwd=ROOT)
    emulated = any((run.get("status") or {}).get("emulated") for run in runs)
    if emulated:
        print("The engine was emulated: these numbers show that Paceline works, not how fast the model is.")
    print(f"Done in {clock(seconds)}. The report is {report.name}. The cluster is up; to go on:")
    print(f"  export KUBECONFIG={STATE / 'kubeconfig'} PATH={KUBECTL.parent}:$PATH")
    print(f"  kubectl -n {namespace} describe specdep {name}")
    print(f"  kubectl -n {namespace} get events --sort-by=.metadata.creationTimestamp")
    print(f"  kubectl -n {namespace} delete specdep {name}     # leaves nothing but the cache claim")
    print("  make test      # deletes the demo first: its tests need the GPUs")
    print("  make cluster-down")
    return 0


def table(runs: list[dict[str, Any]]) -> str:
    """Measured ratio and bounds beside the published ratio."""
    rows = [f"{'pool':<12}{'arm':<9}{'workload':<14}{'ratio':>7}{'lower':>8}{'upper':>8}{'published':>11}"]
    for run in sorted(runs, key=lambda run: str(run["spec"]["pool"])):
        pool, status = run["spec"]["pool"], run["status"]
        for result in status.get("results", ()):
            dataset = result["workload"].split("@")[0]
            published = PUBLISHED.get((pool, result["arm"]), {}).get(dataset)
            numbers = "".join(f"{float(result[key]):>8.3f}" for key in ("ratio", "lower", "upper"))
            rows.append(
                f"{pool:<12}{result['arm']:<9}{result['workload']:<13}{numbers}"
                + (f"{published:>10.2f}x" if published else "")
            )
        for verdict in status.get("armVerdicts", ()):
            rows.append(f"{pool:<12}{verdict['arm']:<9}{verdict['outcome']}: {verdict['reason']}")
        noise = float(status["noise"]) * 100 if "noise" in status else float("nan")
        rows.append(f"{pool:<12}{status['progress'].get('round', 0)} rounds, noise of a point {noise:.2f} %")
    return "\n".join(rows)


def condition(deployment: Mapping[str, Any], kind: str, status: str | None = "True") -> Mapping[str, Any] | None:
    found = (deployment.get("status") or {}).get("conditions", ())
    return next((c for c in found if c["type"] == kind and status in (None, c["status"])), None)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespace", default="paceline-demo")
    parser.add_argument("--report", type=Path, default=ROOT / "report.html")
    parser.add_argument("--limit", type=float, default=1800, help="seconds")
    arguments = parser.parse_args()
    sys.exit(demo(arguments.namespace, arguments.report, arguments.limit))
