"""The client's side of /ctl. An arm's side, and the meaning of each file, is in `render/wrapper.sh`.

A server may have written the files there. Only regular files are opened, never through a link and never in a way that
blocks, and every read has a limit.
"""

import os
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.core.text import printable
from paceline.engines import starts
from paceline.engines.keys import ADMIN_KEY, API_KEY, FLAGS
from paceline.engines.log_tail import failure_line
from paceline.evidence.clocks import Reading, read_clocks
from paceline.pods.opened import opened, read_at_most
from paceline.pods.round.keys import NO_KEYS, Keys
from paceline.pods.round.steps import ServerEnd, ServerFailed

HEARTBEAT_SECONDS = 3.0
_POLL_SECONDS = 0.1
STOP_SECONDS = 120.0
"""More than the wrapper needs for its grace periods."""
MEMORY_SECONDS = 120.0
"""Time for the driver to free the GPU memory of the arm before."""
MEMORY_MIB = 1024
"""GPU memory by which an arm may find more used than the first arm found."""
END = "end"
"""The file in `in` with the round's end: exit code and message of its last container."""
_BEGUN = "begun"
ALIVE_SECONDS = 30.0
"""The wrapper writes `alive` at least every second, and every 10 while the driver does not respond."""
CLOCKS_SECONDS = 15.0
"""More than the 10 after which the wrapper gives up on nvidia-smi, which never runs during a load."""
_LONGEST_LINE = 200
LONGEST_FILE = 64 << 10
LONGEST_LOG = 64 << 20
"""Bytes. An engine that logs a line per step writes a few MB per hour."""
LONGEST_ENDING = 1 << 20
"""Bytes at the end of a log that are searched for the cause of the server's end."""
FILLED_IN = {f"$({name})": f'"${name}"' for name in (API_KEY, ADMIN_KEY)}
"""The shell that starts the server fills the keys in, like the kubelet for a serving pod: no file contains a key."""


class WrapperError(RuntimeError):
    """The wrapper violates its protocol: the round cannot continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport:
    """The wrapper's report from before its server, which the server cannot have changed. `memory`: MiB used on the
    fullest GPU; `kernels`: files compiled by engines."""

    gpus: tuple[str, ...] = ()
    model: str | None = None
    driver: str | None = None
    memory: int | None = None
    kernels: int | None = None


@dataclass(slots=True)
class Control:
    """The directory with `in` and `out`, and the arm; `new_kernels`: by how many files the compiled kernels grew up to
    the last reading of the clocks; the number of readings requested; the open `alive`, its last write, and when we
    first saw that (monotonic)."""

    directory: Path
    arm: str
    keys: Keys = NO_KEYS
    machine: MachineReport = MachineReport()
    new_kernels: int = 0
    _look: int = 0
    _pulse: int | None = None
    _alive: int = 0
    _seen: float = 0.0

    def wait_for_wrapper(self, seconds: float) -> None:
        """Wait for the arm's container, which may start long after the client's, because its image is large."""
        (self.directory / "in" / self.arm).mkdir(exist_ok=True)
        self._await("ready", seconds, f"the container of {self.arm} did not start")
        self.machine = MachineReport(
            gpus=tuple(filter(None, printable(self._read("gpus")).split(","))),
            model=printable(self._read("model")) or None,
            driver=printable(self._read("driver")) or None,
            memory=self._count("memory"),
            kernels=self._count("kernels"),
        )

    def wait_for_memory(self, before: int | None) -> None:
        """Wait until the GPUs are as empty as `before`: what the arm before held is freed after its end."""
        deadline = time.monotonic() + MEMORY_SECONDS
        while before is not None and (used := self._count("memory")) is not None and used > before + MEMORY_MIB:
            message = f"{self.arm} finds {used} MiB of a GPU used, the first arm found {before}; it is still so"
            _pause(deadline, f"{message} after {MEMORY_SECONDS:.0f} s: another program uses the GPU")
            self.clocks()

    def start(self, argv: Sequence[str]) -> None:
        """Ask for the server."""
        self._write("start", f"exec {' '.join(_words(argv))}\n")

    def has_exited(self) -> bool:
        """Whether the server has ended, for any reason. Raises WrapperError if its container is gone."""
        self.check_wrapper()
        return bool(self._read("exit"))

    def check_wrapper(self) -> None:
        """Raises WrapperError if `alive` is no longer written; a missing file means that the wrapper has not begun. It
        stays open, so a server cannot replace it."""
        if self._pulse is None:
            with suppress(FileNotFoundError):
                self._pulse = os.open(self._out / "alive", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            return
        written = os.fstat(self._pulse).st_mtime_ns
        if written != self._alive:
            self._alive, self._seen = written, time.monotonic()
        elif time.monotonic() - self._seen > ALIVE_SECONDS:
            raise WrapperError(f"the container of {self.arm} has exited")

    def stop(self) -> ServerEnd:
        """End the server, wait until all of its processes are gone, and return how it ended."""
        took = None
        if not self.has_exited():
            self._write("stop", "")
            began = time.monotonic()
            while not self.has_exited():
                _pause(began + STOP_SECONDS, f"the server could not be stopped in {STOP_SECONDS:.0f} s")
            took = time.monotonic() - began
        code, _, how = self._read("exit").partition(" ")
        return ServerEnd(int(code) if code.isdigit() and how != "stopped" else None, self.last_words(), took)

    def end(self) -> None:
        """Let the arm's container end, so that the next one starts."""
        self._write("end", "")
        if self._pulse is not None:
            os.close(self._pulse)
            self._pulse = None

    def clocks(self) -> tuple[Reading, ...]:
        """The current reading of each GPU; empty without a driver, or if it does not answer."""
        if not self.machine.driver:
            return ()
        self._look += 1
        self._write(f"look.{self._look}", "")
        with suppress(TimeoutError):
            self._await(f"clocks.{self._look}", CLOCKS_SECONDS, "no clocks", TimeoutError)
        if self.machine.kernels is not None and (now := self._count("kernels")) is not None:
            self.new_kernels = now - self.machine.kernels
            self.machine = replace(self.machine, kernels=now)
        return read_clocks(self._read(f"clocks.{self._look}"))

    def start_log(self) -> str:
        """The server's log so far; empty if it is too long to be that of a start."""
        log = self._bytes("log", starts.LONGEST + 1)
        return log.decode(errors="replace") if len(log) <= starts.LONGEST else ""

    def log(self) -> str:
        """The server's log, without its keys."""
        if len(log := self._bytes("log", LONGEST_LOG + 1)) > LONGEST_LOG:
            raise ServerFailed(f"the server has logged more than {LONGEST_LOG >> 20} MiB: lower its log level")
        return self.keys.hidden_in(log.decode(errors="replace").strip())

    def last_words(self) -> str:
        """The log line that explains the server's end."""
        ending = self._bytes("log", LONGEST_ENDING, from_the_end=True).decode(errors="replace")
        return self.keys.fit_to_show(failure_line(self.keys.hidden_in(ending), _LONGEST_LINE))

    @property
    def _out(self) -> Path:
        return self.directory / "out" / self.arm

    def _count(self, name: str) -> int | None:
        found = self._read(name)
        return int(found) if found.isdecimal() and len(found) < 10 else None

    def _write(self, name: str, text: str) -> None:
        _write(self.directory / "in" / self.arm / name, text)

    def _read(self, name: str) -> str:
        return self._bytes(name, LONGEST_FILE).decode(errors="replace").strip()

    def _bytes(self, name: str, most: int, *, from_the_end: bool = False) -> bytes:
        """The file's content; empty unless it is a regular file."""
        with opened(self._out / name) as file:
            if file is None:
                return b""
            if from_the_end:
                os.lseek(file, max(0, os.fstat(file).st_size - most), os.SEEK_SET)
            return read_at_most(file, most)

    def _await(self, name: str, seconds: float, otherwise: str, error: type[Exception] = WrapperError) -> None:
        deadline = time.monotonic() + seconds
        while not self._is_there(name):
            self.check_wrapper()
            _pause(deadline, f"{otherwise} in {seconds:.0f} s", error)

    def _is_there(self, name: str) -> bool:
        with opened(self._out / name) as file:
            return file is not None


def _words(argv: Sequence[str]) -> Iterator[str]:
    """Quotes for the shell. A key is filled in only after the flags that take one: elsewhere such a word is the user's
    own, and the server would reveal the key to everybody."""
    for before, word in zip(("", *argv), argv, strict=False):
        yield FILLED_IN.get(word, shlex.quote(word)) if before in FLAGS else shlex.quote(word)


def _pause(deadline: float, otherwise: str, error: type[Exception] = WrapperError) -> None:
    if time.monotonic() > deadline:
        raise error(otherwise)
    time.sleep(_POLL_SECONDS)


def control_directory() -> Path:
    return Path(os.environ.get("PACELINE_CTL", "/ctl"))


def begin(directory: Path) -> bool:
    """Writes a heartbeat from a thread while this process lives. False if another client has begun this round."""
    begun = directory / "in" / _BEGUN
    first = not begun.exists()
    begun.touch()

    def beat() -> None:
        count = 0
        while True:
            count += 1
            _write(directory / "in" / "heartbeat", f"{os.getpid()} {count}")
            time.sleep(HEARTBEAT_SECONDS)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    return first


def end_round(directory: Path, code: int, message: str) -> None:
    """Let every container of the round end, the last one with this code and message."""
    _write(directory / "in" / END, f"{code}\n{message}")
    _write(directory / "in" / "done", "")


def _write(path: Path, text: str) -> None:
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)
