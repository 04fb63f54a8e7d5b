"""A pod of a round, as two processes and a directory, and what came of it."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paceline import render
from paceline.core import Dataset, Workload
from paceline.evidence import ArmCommand, Judged, RoundPlan, RoundResult, decode, judge

WRAPPER = Path(render.__file__).with_name("wrapper.sh")
PATIENCE = 90.0
ENVIRON = {
    "PACELINE_HEARTBEAT_SECONDS": "4",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_EMULATE_STARTUP_SECONDS": "0.2",
    "PACELINE_EMULATE_WARMUP_SECONDS": "0.1",
    "PACELINE_EMULATE_DRAIN_POLL_SECONDS": "0.1",
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
}
TARGET = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_experts": 512,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
}
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 2048,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 4096,
}


def workload(dataset: str, concurrency: int, requests: int, max_tokens: int) -> Workload:
    source = Dataset(name=dataset, source=f"builtin://{dataset}", requests=requests, max_tokens=max_tokens)
    return Workload(dataset=source, concurrency=concurrency)


CODE_1 = workload("code", 1, 5, 48)
CHAT_8 = workload("chat", 8, 32, 32)


@dataclass(frozen=True)
class Outcome:
    plan: RoundPlan
    client: int
    wrapper: int
    message: str
    log: str

    @property
    def result(self) -> RoundResult:
        return decode(self.message)

    @property
    def judged(self) -> dict[tuple[str, str], Judged]:
        return {(one.arm, one.workload): one for one in judge(self.plan, self.result)}


@dataclass
class Pod:
    """A pod of a round, as two processes and a directory."""

    directory: Path
    server: "subprocess.Popen[bytes]"
    client: "subprocess.Popen[bytes]"
    plan: RoundPlan

    def finish(self) -> Outcome:
        client, wrapper = self.client.wait(PATIENCE), self.server.wait(PATIENCE)
        message = self.directory / "message"
        log = (self.directory / "client.log").read_text()
        return Outcome(self.plan, client, wrapper, message.read_text() if message.exists() else "", log)

    def server_pid(self) -> int:
        """Of the arm's server, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError, ValueError):
                return int((self.directory / "ctl" / "pid").read_text())
            time.sleep(0.05)
        raise AssertionError("no server was started")


Arms = tuple[ArmCommand, ...]
Start = Callable[..., Pod]
