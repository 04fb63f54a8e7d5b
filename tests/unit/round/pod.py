"""A pod of a round, as processes and a directory, and what came of it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.running import HEAD, TARGET
from tests.unit.round.wrapped import STARTED

from paceline.core import Dataset, Workload
from paceline.engines import ENGINES
from paceline.evidence import ENVIRONMENT, ArmCommand, Judged, Replicate, RoundPlan, RoundResult, decode, judge_points
from paceline.pods.round.control import Control
from paceline.pods.round.keys import NO_KEYS, Keys
from paceline_emulator.hub import tokenizer

PATIENCE = 90.0
ALONE = (
    "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
    *(("--user", "--map-root-user") if os.geteuid() else ()),
    "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh",
)  # fmt: skip
"""What a container is to its processes: the first of them is PID 1, no other sees any of the machine's, and the shared
memory, which PID 1 empties in the end, is its own."""
ENVIRON = {
    # As of itself: a client that a busy machine lets wait is not dead.
    "PACELINE_HEARTBEAT_SECONDS": "30",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_EMULATE_STARTUP_SECONDS": "0.2",
    "PACELINE_EMULATE_WARMUP_SECONDS": "0.1",
    "PACELINE_EMULATE_DRAIN_POLL_SECONDS": "0.1",
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
}


def workload(dataset: str, concurrency: int, requests: int, max_tokens: int) -> Workload:
    source = Dataset(name=dataset, source=f"builtin://{dataset}", requests=requests, max_tokens=max_tokens)
    return Workload(dataset=source, concurrency=concurrency)


CODE_1 = workload("code", 1, 5, 48)
CHAT_8 = workload("chat", 8, 32, 32)


def _in_time(one: Replicate) -> Replicate:
    return replace(one, points=tuple(replace(point, client_lag=0.0) for point in one.points))


@dataclass(frozen=True)
class Outcome:
    plan: RoundPlan
    client: int
    wrapper: int
    message: str
    log: str

    @property
    def result(self) -> RoundResult:
        """As of a client on a machine of its own: how late it is tells of the tests that run beside it."""
        found = decode(self.log)
        return replace(found, replicates=tuple(map(_in_time, found.replicates)))

    @property
    def judged(self) -> dict[tuple[str, str], Judged]:
        return {(one.arm, one.workload): one for one in judge_points(self.plan, self.result)}


Run = Callable[..., "subprocess.Popen[bytes]"]


@dataclass
class Pod:
    """A pod of a round: the client, and as a kubelet does, a container for each arm in turn, and the last one."""

    directory: Path
    client: "subprocess.Popen[bytes]"
    plan: RoundPlan
    container: Run
    alone: bool
    ended: list[int] = field(default_factory=list)
    """Exit codes of the containers of arms, and of the last one."""
    now: "subprocess.Popen[bytes] | None" = None
    stopped: bool = False

    def __post_init__(self) -> None:
        self.turns = threading.Thread(target=self._turns, daemon=True)
        self.turns.start()

    def _turns(self) -> None:
        for arm in self.plan.arms:
            out = self.directory / "ctl" / "out" / arm.name
            out.mkdir()
            wrapper = (*(ALONE if self.alone else ()), *STARTED)
            if not self._run("server", *wrapper, PACELINE_ARM=arm.name, PACELINE_OUT=str(out)):
                return
        self._run("conclude", sys.executable, "-m", "paceline.pods.round.conclude")

    def _run(self, name: str, *argv: str, **env: str) -> bool:
        if not self.stopped:
            self.now = self.container(name, *argv, **env)
            self.ended.append(self.now.wait())
        return not self.stopped and not self.ended[-1]

    def finish(self, patience: float = PATIENCE) -> Outcome:
        self.turns.join(patience)
        assert not self.turns.is_alive(), "the round did not end"
        self.client.terminate()
        assert self.client.wait(patience) == 0
        *wrappers, last = self.ended if len(self.ended) > len(self.plan.arms) else (*self.ended, 1)
        message = self.directory / "message"
        log = (self.directory / "client.log").read_text()
        return Outcome(self.plan, last, max(wrappers), message.read_text() if message.exists() else "", log)

    def end(self) -> None:
        self.stopped = True
        for process in (self.client, self.now):
            if process and process.poll() is None:
                process.terminate()  # the wrapper takes its server along
                process.wait(PATIENCE)
        self.turns.join(PATIENCE)

    def server_pid(self) -> int:
        """Of the arm's server, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError, StopIteration, ValueError):
                return int(next(self.directory.glob("ctl/out/*/pid")).read_text())
            time.sleep(0.05)
        raise AssertionError("no server was started")


def told(directory: Path, keys: Keys = NO_KEYS) -> Control:
    """The client's side, of a wrapper that has said what it says before its server runs."""
    (directory / "in").mkdir(parents=True)
    (directory / "out" / "arm").mkdir(parents=True)
    for name, said in {"alive": "", "gpus": "GPU-0\n", "ready": "1\n"}.items():
        (directory / "out" / "arm" / name).write_text(said)
    control = Control(directory, "arm", keys)
    control.wait_for_wrapper(1.0)
    return control


Arms = tuple[ArmCommand, ...]
Start = Callable[..., Pod]


def write_models(directory: Path) -> Path:
    for name, config in {"target": TARGET, "head": HEAD}.items():
        (directory / name).mkdir()
        (directory / name / "config.json").write_text(json.dumps(config))
    for name, content in tokenizer.files().items():
        (directory / "target" / name).write_bytes(content)
    return directory


def begin(
    models: Path,
    port: int,
    arms: Arms,
    *workloads: Workload,
    change: Callable[[RoundPlan], RoundPlan] | None = None,
    alone: bool = False,
    **env: str,
) -> Pod:
    """Start a round's containers, with all that they write in `models`. `alone`: an arm's has its own PIDs."""
    plan = RoundPlan(
        run="pair-latency-0123456789-1",
        round=2,
        try_=0,
        served_name="pair",
        arms=tuple(replace(arm, port=port) for arm in arms),
        workloads=workloads,
        results_dir=str(models / "results"),
        moved=(*ENGINES["SGLang"].moved(()), "port"),  # in front of some there is a proxy
        start_timeout_seconds=30,
    )
    plan = change(plan) if change else plan
    ctl = models / "ctl"
    for side in ("in", "out"):
        (ctl / side).mkdir(parents=True)
    environment = {
        **os.environ,
        **ENVIRON,
        "PACELINE_CTL": str(ctl),
        "PACELINE_TERMINATION_LOG": str(models / "message"),
        "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1",
        ENVIRONMENT: plan.to_json(),
        **env,
    }

    def container(name: str, *argv: str, **env: str) -> "subprocess.Popen[bytes]":
        with (models / f"{name}.log").open("ab") as log:
            return subprocess.Popen(argv, env={**environment, **env}, stdout=log, stderr=log)

    return Pod(models, container("client", sys.executable, "-m", "paceline.pods.round"), plan, container, alone)
