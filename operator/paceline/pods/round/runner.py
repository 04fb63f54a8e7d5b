"""Performs and times the steps of the protocol."""

import gzip
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

from paceline import __version__
from paceline.core import Workload
from paceline.core.text import count, in_all_texts
from paceline.core.timeouts import PULL_SECONDS
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, Failure, Replicate, RoundPlan, RoundResult, encode
from paceline.evidence.arguments import MOST, differences, in_common
from paceline.evidence.clocks import Reading
from paceline.pods.round import load, parity, per_request, positions, server, watch
from paceline.pods.round.control import Control, MachineReport, WrapperError
from paceline.pods.round.keys import Keys
from paceline.pods.round.steps import (
    ArmResult,
    Ask,
    Flush,
    Get,
    Instruction,
    Loaded,
    Log,
    ReadClocks,
    SampleAgain,
    SaveLine,
    SendLoad,
    ServerFailed,
    Start,
    StartLog,
    Stop,
    replicate,
)

READY_POLL_SECONDS = 0.2
_EMULATED = "emulated"
"""In the version that an emulator reports."""


@dataclass(slots=True)
class Runner:
    """A round's plan, the directory shared with its arms' containers, the servers' keys, a scratch directory; seconds
    spent starting and measuring so far; the arm under way, and what the first one found; the last load, and the kernels
    that the arm has compiled."""

    plan: RoundPlan
    directory: Path
    keys: Keys
    scratch: Path
    control: Control = field(init=False)
    machine: MachineReport | None = field(default=None, init=False)
    sent: SendLoad | None = field(default=None, init=False)
    compiled: list[str] = field(default_factory=list, init=False)
    useful_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    arm: ArmCommand = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.arm.port}"

    def run(self) -> RoundResult:
        """Measures all arms in turn. A server's failure is in the result; a failure of the round itself is raised.

        The log has the result so far before each arm: if the arm's container is killed, the pod ends with it.
        """
        began, results = (time.time(), time.monotonic()), list[ArmResult]()
        self.truncate_lines()
        for arm in self.plan.arms:
            say(encode(self.so_far(results, *began)))
            results.append(self.drive(arm))
        return self.so_far(results, *began)

    def so_far(self, results: Sequence[ArmResult], started: float, began: float) -> RoundResult:
        """`started`: epoch seconds; `began`: monotonic seconds of the same moment."""
        known = {value for arm in self.plan.arms for value in arm.expected.values()}
        versions = [one.replicate.version for one in results if one.replicate.version]
        shared = {arm.name for arm in self.plan.arms if arm.held is None}
        of_shared = [one.replicate.version for one in results if one.replicate.version and one.replicate.arm in shared]
        digest, length = self.lines_digest()
        machine = self.machine or MachineReport()
        result = RoundResult(
            round=self.plan.round,
            try_=self.plan.try_,
            replicates=self.compared(results),
            gpus=machine.gpus,
            gpu_model=machine.model,
            driver=machine.driver,
            datasets=load.digests(self.plan),
            prompts=load.usable_prompts(self.plan),
            engine_version=of_shared[0] if of_shared else "",
            paceline=__version__,
            emulated=any(_EMULATED in version for version in versions),
            started=started,
            finished=time.time(),
            overhead_seconds=max(0.0, time.monotonic() - began - self.useful_seconds),
            lines_sha256=digest,
            lines_bytes=length,
            notes=tuple(self.notes),
        )
        return self.keys.masked(result, known)

    def compared(self, results: Sequence[ArmResult]) -> tuple[Replicate, ...]:
        """Adds differences from the baseline's arguments, and the comparison of answers, which is known once the last
        arm has answered."""
        baseline = self.plan.baseline.name if self.plan.baseline else ""
        base = next((one.arguments for one in results if one.replicate.arm == baseline), {})
        told = [_beside_baseline(one, results, baseline) for one in results]
        if self.plan.moved is not None and base:
            told = [
                self.beside(arm, one.arguments, base, replicate) if one.arguments else replicate
                for arm, one, replicate in zip(self.plan.arms, results, told, strict=False)
            ]
        if not self.plan.parity:
            return tuple(told)
        found = parity.parity_outputs(self.plan.parity, {one.replicate.arm: one.answers for one in results}, baseline)
        return tuple(replace(one, outputs=found[one.arm]) for one in told)

    def beside(
        self, arm: ArmCommand, arguments: Mapping[str, str], base: Mapping[str, str], replicate: Replicate
    ) -> Replicate:
        """The replicate with its differences from the baseline's arguments; of another engine, in common names."""
        first = self.plan.baseline
        if first and arm.engine != first.engine:
            ours, theirs = in_common(arm.engine, arguments), in_common(first.engine, base)
            arguments = {name: value for name, value in ours.items() if name in theirs}
            base = {name: theirs[name] for name in arguments}
        found = differences(arguments, base, arm.held or ())
        return replace(replicate, differs=found[:MOST], differing=len(found))

    def drive(self, arm: ArmCommand) -> ArmResult:
        """Runs the protocol of one arm to its end, in its container."""
        self.arm = arm
        self.control = Control(self.directory, arm.name, self.keys)
        self.control.wait_for_wrapper(self.plan.start_timeout_seconds + PULL_SECONDS)
        self.check_devices()
        result = self.protocol(arm)
        if self.compiled:  # its start was slower than later ones will be, and so was a load
            self.note(f"{arm.name} compiled kernels: {', '.join(self.compiled)}")
            self.compiled.clear()
        self.control.end()
        return result

    def check_devices(self) -> None:
        """Every arm runs on the first one's GPUs, and finds them as empty."""
        found, first = self.control.machine, self.machine or self.control.machine
        self.machine = first
        if not (found.gpus and first.gpus):
            if not self.plan.claimed:
                self.note("devices were not compared: an arm's container does not name its GPUs")
        elif set(found.gpus) != set(first.gpus):
            here, there = ", ".join(found.gpus), ", ".join(first.gpus)
            raise WrapperError(f"{self.control.arm} was given the GPUs {here}, the first arm {there}")
        self.control.wait_for_memory(first.memory)

    def protocol(self, arm: ArmCommand) -> ArmResult:
        steps = replicate(self.plan, arm)
        step = next(steps)
        while True:
            try:
                try:
                    answer = self.perform(step)
                    self.check_alive(step)
                except ServerFailed as failed:
                    step = steps.throw(failed)
                else:
                    step = steps.send(answer)
            except StopIteration as end:
                result: ArmResult = end.value
                say(f"{arm.name}: {self.keys.fit_to_show(result.replicate.error) or 'done'}")
                return result

    def perform(self, step: Instruction) -> Any:
        match step:
            case Start(arm):
                return self.start(arm)
            case Get(path):
                return server.get(self.url, path, self.keys.api)
            case StartLog():
                return self.control.start_log()
            case Log():
                return self.control.log()
            case Flush(path):
                return server.flush(self.url, path, self.keys.administration)
            case SendLoad():
                return self.load(step)
            case ReadClocks():
                return self.clocks()
            case Ask(arm, prompt):
                return self.ask(arm, prompt)
            case SampleAgain(arm, workload):
                return self.sample(arm, workload)
            case SaveLine(line):
                return self.save_line(line)
            case Stop():
                return self.control.stop()
            case _:
                assert_never(step)

    def start(self, arm: ArmCommand) -> float:
        say(f"{arm.name}: starting")
        server.wait_for_port(arm.port)
        began = time.monotonic()
        self.control.start(arm.argv)
        adapter, version = ENGINES[arm.engine], arm.engine_version
        ready, patience = adapter.ready_path(version), adapter.ready_answer_seconds(version)
        while not server.is_ready(self.url, ready, patience):
            if self.control.has_exited():
                raise ServerFailed("the server exited")
            if time.monotonic() - began > self.plan.start_timeout_seconds:
                message = f"not ready after {self.plan.start_timeout_seconds:.0f} s"
                raise ServerFailed(message, Failure.StartTimeout)
            time.sleep(READY_POLL_SECONDS)
        took = time.monotonic() - began
        self.useful_seconds += took
        say(f"{arm.name}: ready after {took:.1f} s")
        return took

    def load(self, step: SendLoad) -> Loaded:
        self.sent = step
        try:
            key = self.keys.api
            with watch.depth(step, load.probe_of(step.arm), lambda path: server.get(self.url, path, key)) as depths:
                loaded = load.send_load(self.plan, step.arm, step.workload, self.scratch, key, step.window)
            loaded = replace(loaded, draft_tokens=depths.mean)
        except TimeoutError as error:
            message = f"{step.workload.name}: timed out after {self.plan.timeout_of(step.workload):.0f} s"
            raise ServerFailed(message, Failure.TimedOut) from error
        except load.LoadError as error:
            raise ServerFailed(f"{step.workload.name}: {error}") from error
        if not step.window:
            self.useful_seconds += loaded.report["duration"]
            if errors := [error for error in loaded.report["errors"] if error]:
                self.note_failed(f"{step.arm.name} {step.workload.name}", errors)
            speed = sum(loaded.report["output_lens"]) / loaded.report["duration"]
            say(f"{step.arm.name} {step.workload.name}: {speed:.2f} tok/s")
        return loaded

    def clocks(self) -> tuple[Reading, ...]:
        """Remembers kernels that were compiled since the last reading."""
        readings = self.control.clocks()
        if self.control.new_kernels > 0 and self.sent:
            when = "before" if self.sent.window else "during"
            self.compiled.append(f"{count(self.control.new_kernels, 'file')} {when} {self.sent.workload.name}")
        return readings

    def ask(self, arm: ArmCommand, prompt: int) -> Mapping[str, Any] | str:
        began = time.monotonic()
        body = load.parity_question(self.plan, arm, prompt)
        found = server.ask_server(self.url, body, self.keys.api, self.plan.workload_timeout_seconds)
        self.useful_seconds += time.monotonic() - began
        return found

    def sample(self, arm: ArmCommand, workload: Workload) -> list[Mapping[str, Any] | str]:
        """Failed answers do not fail the arm: the sample decides nothing."""
        began = time.monotonic()
        bodies = load.sample(self.plan, arm, workload)

        def ask(body: Mapping[str, Any]) -> Mapping[str, Any] | str:
            try:
                return server.ask_server(self.url, body, self.keys.api, positions.SECONDS)
            except ServerFailed as failed:
                return str(failed)

        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(ask, bodies))
        self.useful_seconds += time.monotonic() - began
        if all(isinstance(answer, str) for answer in answers):
            self.notes.append(f"acceptance by position of {arm.name} on {workload.name} is unavailable: {answers[0]}")
        return answers

    def truncate_lines(self) -> None:
        """Empty the file of lines: an interrupted round is repeated under the same name."""
        path = Path(self.plan.lines_path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        except OSError as error:
            self.note_unsaved(error)

    def save_line(self, line: Mapping[str, Any]) -> None:
        """Append a line, best effort: if the volume cannot be written, the result has a note."""
        path = Path(self.plan.lines_path)
        try:
            with gzip.open(path, "at") as lines:
                lines.write(json.dumps(in_all_texts(line, self.keys.hidden_anyway)) + "\n")
        except (OSError, RecursionError) as error:
            self.note_unsaved(error)

    def lines_digest(self) -> tuple[str, int]:
        """SHA-256 and length of the lines' file, read back; "" and 0 if there is none."""
        path = Path(self.plan.lines_path)
        try:
            content = path.read_bytes() if path.is_file() else b""
        except OSError as error:
            self.note_unsaved(error)
            return "", 0
        return hashlib.sha256(content).hexdigest() if content else "", len(content)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def note_unsaved(self, error: OSError | RecursionError) -> None:
        note = f"results not kept: {error}"
        if not any(said.startswith("results not kept") for said in self.notes):
            self.notes.append(note)

    def note_failed(self, where: str, errors: Sequence[str]) -> None:
        """Notes the first error. Every arm may get the same one: it is noted once."""
        first = self.keys.fit_to_show(errors[0])
        said = f"{where}: {count(len(errors), 'request')} failed, the first: {first}"
        say(said)
        if not any(note.endswith(first) for note in self.notes):
            self.notes.append(said)

    def check_alive(self, step: Instruction) -> None:
        """The result of a step is valid only if the server is still alive."""
        if not isinstance(step, Stop) and self.control.has_exited():
            raise ServerFailed("the server exited")


def _beside_baseline(one: ArmResult, results: Sequence[ArmResult], baseline: str) -> Replicate:
    """A candidate's points with their speed-ups by prompt."""
    if one.replicate.arm == baseline:
        return one.replicate
    base = next((other.speeds for other in results if other.replicate.arm == baseline), {})
    pairs = (
        (point, one.speeds.get(point.workload, ()), base.get(point.workload, ())) for point in one.replicate.points
    )
    return replace(one.replicate, points=tuple(per_request.with_prompt_speedups(*pair) for pair in pairs))


def say(line: str) -> None:
    """Print to the container's log."""
    print(line, flush=True)
