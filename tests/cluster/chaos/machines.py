"""Programs of the local cluster, to be killed, stopped and cut off, and put right again."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kubernetes import KUBECTL, OPERATOR, STATE, kubectl, listed, run
from tests.support.processes import kill

ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "dev" / "cluster"
HELM = KUBECTL.with_name("helm")
CHART = ROOT / "charts" / "paceline"
API = "10.245.0.10"


def pid(program: str, node: int = 0) -> int:
    return int((STATE / "run" / f"{program}-{node}.pid").read_text())


def number(node: str) -> int:
    """Of its name: `paceline-1` is 1."""
    return int(node.rpartition("-")[2])


def repair() -> None:
    """What died is started again."""
    done = subprocess.run([CLUSTER / "up"], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def killed(program: str, node: int = 0) -> Iterator[None]:
    """Until the end of the block."""
    kill(pid(program, node))
    try:
        yield
    finally:
        repair()


@contextmanager
def stopped(program: str) -> Iterator[None]:
    os.kill(pid(program), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid(program), signal.SIGCONT)


def on_node(node: int, *command: str, check: bool = True) -> str:
    inside = ("nsenter", "--target", str(pid("anchor", node)), "--net", "--mount", "--", *command)
    return subprocess.run(inside, capture_output=True, text=True, timeout=30, check=check).stdout


@contextmanager
def dropped(nodes: tuple[int, ...], *match: str) -> Iterator[None]:
    """Packets that match are lost on these nodes, whether the node or one of its pods sends them."""
    rules = [(node, (chain, *match, "-j", "DROP")) for node in nodes for chain in ("OUTPUT", "FORWARD")]
    for node, rule in rules:
        on_node(node, "iptables", "--wait", "--insert", *rule)
    try:
        yield
    finally:
        for node, rule in rules:
            on_node(node, "iptables", "--wait", "--delete", *rule)


@contextmanager
def cut_off(node: int) -> Iterator[None]:
    """Nothing of this node reaches the API server."""
    with dropped((node,), "-d", f"{API}/32", "-p", "tcp", "--dport", "6443"):
        yield


@contextmanager
def without_rights() -> Iterator[None]:
    kept = json.loads(kubectl("get", "clusterrolebinding", "paceline", "-o", "json"))
    kubectl("delete", "clusterrolebinding", "paceline")
    kept["metadata"] = {
        key: kept["metadata"][key] for key in ("name", "labels", "annotations") if key in kept["metadata"]
    }
    try:
        yield
    finally:
        kubectl("apply", "-f", "-", feed=json.dumps(kept))


def helm(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [HELM, "--kubeconfig", STATE / "kubeconfig", "--namespace", OPERATOR, *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done


def installed() -> None:
    """As `make operator-up` does it."""
    done = subprocess.run([ROOT / "dev" / "install-operator"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def scaled(replicas: int) -> Iterator[None]:
    """So many operators; by helm, as a person would, so that the next upgrade finds no foreign owner of the field."""
    helm("upgrade", "paceline", str(CHART), "--reuse-values", "--set", f"replicas={replicas}", "--wait")
    try:
        yield
    finally:
        helm("upgrade", "paceline", str(CHART), "--reuse-values", "--set", "replicas=1", "--wait")


def lease() -> str:
    """Who works: pod and process."""
    found = run("--namespace", OPERATOR, "get", "lease", "paceline", "-o", "jsonpath={.spec.holderIdentity}")
    return found.stdout


def operator_pod() -> str:
    return lease().rpartition("_")[0]


@contextmanager
def faked(clock: Path) -> Iterator[None]:
    """The operator's process has a wall clock that `clock`, a file of an offset, sets (libfaketime); its monotonic
    clock goes on. No other process hears of it."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    place = STATE / "volumes" / "clock"
    place.mkdir(exist_ok=True)
    (place / library.name).write_bytes(library.read_bytes())
    inside = "/clock"
    environment = {
        "LD_PRELOAD": f"{inside}/{library.name}",
        "FAKETIME_TIMESTAMP_FILE": f"{inside}/{clock.name}",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    container = {
        "name": "operator",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [{"name": "clock", "mountPath": inside}],
    }
    spec = {"containers": [container], "volumes": [{"name": "clock", "hostPath": {"path": str(place)}}]}
    home = ("--namespace", OPERATOR)
    rolled = ("rollout", "status", "deployment/paceline", "--timeout", "90s")
    (place / clock.name).write_text("+0\n")
    kubectl(*home, "patch", "deployment", "paceline", "--patch", json.dumps({"spec": {"template": {"spec": spec}}}))
    kubectl(*home, *rolled)
    try:
        yield
    finally:
        kubectl(*home, "rollout", "undo", "deployment/paceline")
        kubectl(*home, *rolled)


def set_clock(clock: Path, seconds: int) -> None:
    (STATE / "volumes" / "clock" / clock.name).write_text(f"{seconds:+d}\n")


def uncordon() -> None:
    kubectl("uncordon", *(node["metadata"]["name"] for node in listed("nodes")))


def steady(seconds: float) -> None:
    time.sleep(seconds)
