"""The wrapper of an arm's container at work, and what a client does to it."""

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline import render

WRAPPER, ENERGY = (Path(render.__file__).with_name(name) for name in ("wrapper.sh", "energy.py"))
STARTED = ("dash", "-c", WRAPPER.read_text(), "wrapper", ENERGY.read_text())
"""As a round's Job starts it."""
QUICK = {
    "PACELINE_HEARTBEAT_SECONDS": "2",
    "PACELINE_CLIENT_SECONDS": "4",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_ARM": "arm",
}


@dataclass
class Wrapped:
    process: "subprocess.Popen[bytes]"
    ctl: Path
    beats: int = 0
    seen: int = 0
    """The server's pid."""

    @property
    def out(self) -> Path:
        return self.ctl / "out"

    def tell(self, name: str, text: str = "") -> None:
        """As the client writes: under another name, then renamed."""
        path = self.ctl / "in" / name
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(text)
        hidden.rename(path)

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
        """Start the server; its pid."""
        self.until((self.out / "ready").exists)
        self.tell("arm/start", f"exec {shlex.join(argv)}\n")
        self.until(lambda: self.said("pid"))
        self.seen = int(self.said("pid"))
        return self.seen

    def stop(self) -> None:
        self.tell("arm/stop")

    def said(self, name: str) -> str:
        """By the wrapper; nothing as long as there is nothing."""
        try:
            return (self.out / name).read_text()
        except FileNotFoundError:
            return ""

    def has_exited(self) -> bool:
        return bool(self.said("exit"))

    def exit(self) -> str:
        """How the server ended, once it has."""
        self.until(self.has_exited)
        return self.said("exit").strip()

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
