"""A round's pod on this machine: its containers as processes, the client beside the others, which run in turn.

None outlives us: the kernel ends them when we end, by any signal; a wrapper then ends its server.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paceline.core.manifest import Manifest
from paceline.engines.pod_template import CLIENT, CONCLUDE, arm_container
from paceline.evidence import RoundPlan
from paceline.measure import devices, status
from paceline.measure.machine import (
    Machine,
    as_here,
    expanded,
    hidden_variables,
    past_proxies,
    process_environment,
)
from paceline.measure.status import ContainerEnd
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.step import parse_time, timestamp
from paceline.render.files import files_in

_ENDING_SECONDS = 180.0
"""More seconds than the wrapper needs to end a server: its grace periods, and the wait for the GPUs' memory."""
_LONGEST_MESSAGE = 4096
_LONGEST_TAIL = 2048
"""Bytes that the kubelet keeps of a termination message, and of a log used in its place."""
LONGEST_CLIENT_LOG = 8 << 20
PR_SET_PDEATHSIG = 1
STDERR = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    name: str
    command: Sequence[str]
    variables: Mapping[str, str]


@dataclass(kw_only=True)
class Pod:
    """`processes` by name of their container, in the order of their start; `waiting` start one after another, each once
    the one before has ended well. They write into `folder`, and keep `lock` open."""

    job: Manifest
    machine: Machine
    folder: Path
    began: datetime
    lock: int
    waiting: list[Container]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    """Other programs that used the GPUs when the round began."""
    ended: datetime | None = None
    late: bool = False
    _seen: RoundJob | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    def seen(self, now: datetime) -> RoundJob:
        """The round as a cluster would show it now. Ends the round first if it is over its deadline."""
        if self.ended is None and (now - self.began).total_seconds() > self._deadline:
            self.late = True
            self.stop()
        if self.ended is None and not self.advance():
            self.stop()
            self.ended = now
        if self.ended is None:
            return status.running_pod(self.job, self.machine.name, self.began)
        if self._seen is None:
            how = {name: self._end_of(name) for name in self.processes}
            log = _ending(self.log(CLIENT), LONGEST_CLIENT_LOG)
            over = status.over(self.job, self.machine.name, self.began, self.ended, how, log, late=self.late)
            self._seen = replace(over, neighbours=self.beside)
            shutil.rmtree(self.folder / "ctl", ignore_errors=True)
        return self._seen

    def advance(self) -> bool:
        """Start the next container if the one before has ended well. False if that was the last, or has failed."""
        _client, *turns = self.processes.values()
        if turns and turns[-1].poll() is None:
            return True
        if (turns and turns[-1].returncode) or not self.waiting:
            return False
        self.start(self.waiting.pop(0))
        return True

    def start(self, container: Container) -> None:
        log = self.folder / f"{container.name}.log"
        self.processes[container.name] = run(container.command, container.variables, log, self.lock)

    def stop(self) -> None:
        """End the processes; a wrapper ends its server. Returns once all are gone."""
        self.waiting.clear()
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _ENDING_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    @property
    def _deadline(self) -> float:
        return float(self.job["spec"]["template"]["spec"]["activeDeadlineSeconds"])

    def _end_of(self, name: str) -> ContainerEnd:
        code = self.processes[name].returncode
        message = _beginning(self.folder / f"{name}.message", _LONGEST_MESSAGE)
        code = 128 - code if code < 0 else code
        return ContainerEnd(code=code, message=message or (_ending(self.log(name), _LONGEST_TAIL) if code else ""))


def start(job: Manifest, machine: Machine, environ: Mapping[str, str], now: datetime, lock: int) -> Pod:
    """Start a round's processes, which keep `lock` open, as do their own children. Raises UnsetVariableError."""
    job = as_here(job, machine)
    plan = RoundJob(job=job, pod=None).plan
    folder = machine.folder / f"round-{plan.round}-{plan.try_}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "ctl" / "in").mkdir(parents=True)
    for path, text in files_in(job["spec"]["template"]).items():
        place = Path(machine.here(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    uid = str(uuid.uuid4())
    fields = {"uid": uid, "name": job["metadata"]["name"], "node": machine.name}
    pod = Pod(
        job={**job, "metadata": {**job["metadata"], "uid": uid, "creationTimestamp": timestamp(now)}},
        machine=machine,
        folder=folder,
        began=parse_time(timestamp(now)),
        lock=lock,
        waiting=list(_containers(job, plan, machine, environ, folder, fields)),
        beside=devices.other_programs(machine.devices),
    )
    pod.start(pod.waiting.pop(0))
    return pod


def _containers(
    job: Manifest,
    plan: RoundPlan,
    machine: Machine,
    environ: Mapping[str, str],
    folder: Path,
    fields: Mapping[str, str],
) -> Iterator[Container]:
    """The client, those of the arms, and the last one. The user's own init containers do not run here."""
    spec = job["spec"]["template"]["spec"]
    parts = {one["name"]: one for one in (*spec["initContainers"], *spec["containers"])}
    outs = {arm_container(arm.name): folder / "ctl" / "out" / arm.name for arm in plan.arms}
    arms = {arm_container(arm.name): machine.of(arm.name) for arm in plan.arms}
    for name in (CLIENT, *outs, CONCLUDE):
        here = arms.get(name, machine)
        given = {**environ, **here.env}
        variables = process_environment(parts[name], machine, given, fields)
        own = {"PACELINE_CTL": str(folder / "ctl"), "PACELINE_TERMINATION_LOG": str(folder / f"{name}.message")}
        if name in outs:
            outs[name].mkdir(parents=True)
            more = {**of_servers(here, environ), "PACELINE_OUT": str(outs[name])}
        else:
            more = {"PYTHONUNBUFFERED": "1", **(hidden_variables(machine, given) if name == CLIENT else {})}
        command = [expanded(word, variables) for word in parts[name]["command"]]
        yield Container(name=name, command=command, variables={**environ, **variables, **more, **own})


def of_servers(machine: Machine, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Variables of the servers' process, besides the container's. The driver reports the GPUs, unless no server uses
    one."""
    own = past_proxies(environ)
    if machine.emulated:
        own |= {"NVIDIA_VISIBLE_DEVICES": "emulated"}
    elif machine.devices:
        numbers = ",".join(machine.devices)
        own |= {devices.VISIBLE: numbers, "PACELINE_DEVICES": numbers, "NVIDIA_VISIBLE_DEVICES": "", **devices.ORDERED}
    return {**own, **machine.env}


def run(command: Sequence[str], environ: Mapping[str, str], log: Path | None, lock: int) -> "subprocess.Popen[bytes]":
    """A process in a new session, which a terminal's Ctrl-C does not reach; we end it, or the kernel does. Without
    `log` it writes to our stderr."""
    ours = os.getpid()

    def end_with_us() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != ours:  # our process had ended before prctl took effect
            os._exit(143)

    program = sys.executable if command[0] == "python" else command[0]
    with log.open("ab") if log else os.fdopen(os.dup(STDERR), "ab") as out:
        return subprocess.Popen(
            [program, *command[1:]],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            pass_fds=(lock,),
            preexec_fn=end_with_us,
        )


def _beginning(file: Path, most: int) -> str:
    return file.read_bytes()[:most].decode(errors="replace") if file.is_file() else ""


def _ending(file: Path, most: int) -> str:
    return file.read_bytes()[-most:].decode(errors="replace") if file.is_file() else ""
