"""The wrapper of a round's server container at work, and what a client does to it."""

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paceline import render

WRAPPER = Path(render.__file__).with_name("wrapper.sh")
QUICK = {
    "PACELINE_HEARTBEAT_SECONDS": "2",
    "PACELINE_CLIENT_SECONDS": "4",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_GPU_SECONDS": "3",
}


@dataclass
class Wrapped:
    process: "subprocess.Popen[bytes]"
    ctl: Path
    beats: int = 0
    server: int = 0
    seals: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def tell(self, name: str, text: str = "") -> None:
        """As the client writes: under another name, then renamed."""
        hidden = self.ctl / "in" / f".{name}"
        hidden.write_text(text)
        hidden.rename(self.ctl / "in" / name)

    def until(self, ready: Callable[[], object], *, beating: bool = True, seconds: float = 15) -> None:
        """Wait, with a heartbeat."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"not in {seconds} s: {sorted(map(str, self.ctl.rglob('*')))}"
            if beating:
                self.beats += 1
                self.tell("heartbeat", str(self.beats))
            time.sleep(0.05)

    def start(self, *argv: str) -> int:
        """Start a server; its pid, or 0 if it has ended already."""
        self.until((self.ctl / "out" / "seals").exists if not self.server else lambda: True)
        self.seals = self.seals or (self.ctl / "out" / "seals").read_text().split()
        self.server += 1
        self.tell(f"start.{self.server}", f"exec {shlex.join(argv)}\n")
        self.until(lambda: self.said("pid") or self.has_exited())
        self.seen.append(int(self.said("pid") or 0))
        return self.seen[-1]

    def stop(self) -> None:
        self.tell(f"stop.{self.server}")

    def said(self, name: str) -> str:
        """By the wrapper; nothing as long as there is nothing."""
        try:
            return (self.ctl / "out" / name).read_text()
        except FileNotFoundError:
            return ""

    def has_exited(self) -> bool:
        return bool(self.said(f"exit.{self.server}"))

    def exit(self) -> str:
        """How the server ended, once it has."""
        self.until(self.has_exited)
        seal, _, how = self.said(f"exit.{self.server}").strip().partition(" ")
        assert seal == self.seals[self.server - 1]
        return how

    def log(self) -> str:
        """What the server has said so far."""
        return self.said("log")

    def ended(self, **how: bool) -> int:
        """The wrapper's own exit code, once it has ended."""
        self.until(lambda: self.process.poll() is not None, **how)
        return self.process.returncode


def alive(pid: int) -> bool:
    """More than a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


Wrap = Callable[..., Wrapped]
