"""A round's pod on this machine: the wrapper with the engine's servers, and the client, as two processes.

Neither outlives us: the kernel ends both when we end, by any signal; the wrapper then ends its server.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paceline.core.manifest import Manifest
from paceline.measure import devices, status
from paceline.measure.machine import (
    Machine,
    as_here,
    containers,
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


@dataclass(kw_only=True)
class Pod:
    """The processes by name of their container; they write into `folder`."""

    job: Manifest
    machine: Machine
    folder: Path
    began: datetime
    processes: Mapping[str, "subprocess.Popen[bytes]"]
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
        if self.ended is None and all(process.poll() is not None for process in self.processes.values()):
            self.ended = now
        if self.ended is None:
            return status.running_pod(self.job, self.machine.name, self.began)
        if self._seen is None:
            how = {name: self._end_of(name) for name in self.processes}
            log = _ending(self.log("client"), LONGEST_CLIENT_LOG)
            over = status.over(self.job, self.machine.name, self.began, self.ended, how, log, late=self.late)
            self._seen = replace(over, neighbours=self.beside)
            shutil.rmtree(self.folder / "ctl", ignore_errors=True)
        return self._seen

    def stop(self) -> None:
        """End the processes, the client first; the wrapper ends its server. Returns once all are gone."""
        for process in reversed(tuple(self.processes.values())):
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
    for side in ("in", "out"):
        (folder / "ctl" / side).mkdir(parents=True)
    for path, text in files_in(job["spec"]["template"]).items():
        place = Path(machine.here(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    uid = str(uuid.uuid4())
    pod = {"uid": uid, "name": job["metadata"]["name"], "node": machine.name}
    parts = containers(job)
    commands, given = {}, {**environ, **machine.env}
    for part, more in {"server": of_servers(machine, environ), "client": {"PYTHONUNBUFFERED": "1"}}.items():
        variables = process_environment(parts[part], machine, given, pod)
        if part == "client":
            variables |= hidden_variables(machine, given)
        own = {"PACELINE_CTL": str(folder / "ctl"), "PACELINE_TERMINATION_LOG": str(folder / f"{part}.message")}
        command = [expanded(word, variables) for word in parts[part]["command"]]
        commands[part] = command, {**environ, **variables, **more, **own}
    return Pod(
        job={**job, "metadata": {**job["metadata"], "uid": uid, "creationTimestamp": timestamp(now)}},
        machine=machine,
        folder=folder,
        began=parse_time(timestamp(now)),
        beside=devices.other_programs(machine.devices),
        processes={
            part: run(command, variables, folder / f"{part}.log", lock)
            for part, (command, variables) in commands.items()
        },
    )


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
