"""The client's side of /ctl. The other side, and the meaning of each file, is in `render/wrapper.sh`.

A server may have written the files there. Only regular files are opened, never through a link and never in a way that
blocks, and every read has a limit.
"""

import os
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paceline.core.text import printable
from paceline.engines.keys import ADMIN_KEY, API_KEY, FLAGS
from paceline.engines.log_tail import failure_line
from paceline.evidence.clocks import Reading, read_clocks
from paceline.pods.opened import opened, read_at_most
from paceline.pods.round.keys import NO_KEYS, Keys
from paceline.pods.round.steps import ServerEnd, ServerFailed

HEARTBEAT_SECONDS = 3.0
_POLL_SECONDS = 0.1
STOP_SECONDS = 300.0
"""More than the wrapper needs for its grace periods and for the GPUs' memory to be freed."""
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
    """The wrapper's report from before the first server, which no server can have changed. Each server's exit status
    has the next of the `seals`."""

    gpus: tuple[str, ...] = ()
    model: str | None = None
    driver: str | None = None
    seals: tuple[str, ...] = ()


@dataclass(slots=True)
class Control:
    """The directory with `in` and `out`; the number of servers started and of clock readings requested; the open
    `alive`, its last write, and when we first saw that (monotonic)."""

    directory: Path
    keys: Keys = NO_KEYS
    machine: MachineReport = MachineReport()
    _server: int = 0
    _look: int = 0
    _pulse: int | None = None
    _alive: int = 0
    _seen: float = 0.0

    def wait_for_wrapper(self, seconds: float) -> None:
        """Wait for the server's container, which may start long after the client's, because its image is large."""
        self._await("seals", seconds, "the server's container did not start")
        self.machine = MachineReport(
            gpus=tuple(filter(None, printable(self._read("gpus")).split(","))),
            model=printable(self._read("model")) or None,
            driver=printable(self._read("driver")) or None,
            seals=tuple(self._read("seals").split()),
        )

    def start(self, argv: Sequence[str]) -> None:
        """Ask for a server."""
        if self._server == len(self.machine.seals):
            raise WrapperError(
                f"the server's container gave {self._server} seals, but one more server is to be started"
            )
        self._server += 1
        self._write(f"start.{self._server}", f"exec {' '.join(_words(argv))}\n")

    def has_exited(self) -> bool:
        """Whether the last server has ended, for any reason. Raises WrapperError if its container is gone."""
        self.check_wrapper()
        return self._exit() is not None

    def check_wrapper(self) -> None:
        """Raises WrapperError if `alive` is no longer written; a missing file means that the wrapper has not begun. It
        stays open, so a server cannot replace it."""
        if self._pulse is None:
            with suppress(FileNotFoundError):
                self._pulse = os.open(self.directory / "out" / "alive", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            return
        written = os.fstat(self._pulse).st_mtime_ns
        if written != self._alive:
            self._alive, self._seen = written, time.monotonic()
        elif time.monotonic() - self._seen > ALIVE_SECONDS:
            raise WrapperError("the server container has exited")

    def stop(self) -> ServerEnd:
        """End the server, wait until all of its processes are gone, and return how it ended."""
        if not self.has_exited():
            self._write(f"stop.{self._server}", "")
            deadline = time.monotonic() + STOP_SECONDS
            while not self.has_exited():
                _pause(deadline, f"the server could not be stopped in {STOP_SECONDS:.0f} s")
        code, _, how = (self._exit() or "").partition(" ")
        return ServerEnd(None if how == "stopped" else int(code), self.last_words())

    def done(self) -> None:
        self._write("done", "")

    def beat(self, count: int) -> None:
        self._write("heartbeat", str(count))

    def clocks(self) -> tuple[Reading, ...]:
        """The current reading of each GPU; empty without a driver, or if it does not answer."""
        if not self.machine.driver:
            return ()
        self._look += 1
        self._write(f"look.{self._look}", "")
        with suppress(TimeoutError):
            self._await(f"clocks.{self._look}", CLOCKS_SECONDS, "no clocks", TimeoutError)
        return read_clocks(self._read(f"clocks.{self._look}"))

    def log(self) -> str:
        """The last server's log since its start, without its keys."""
        if len(log := self._bytes("log", LONGEST_LOG + 1)) > LONGEST_LOG:
            raise ServerFailed(f"the server has logged more than {LONGEST_LOG >> 20} MiB: lower its log level")
        return self.keys.hidden_in(log.decode(errors="replace").strip())

    def last_words(self) -> str:
        """The log line that explains the server's end."""
        ending = self._bytes("log", LONGEST_ENDING, from_the_end=True).decode(errors="replace")
        return self.keys.fit_to_show(failure_line(self.keys.hidden_in(ending), _LONGEST_LINE))

    def _exit(self) -> str | None:
        """Exit status and manner of the end; None until they arrive with this server's seal."""
        seal, _, how = self._read(f"exit.{self._server}").partition(" ")
        return how if self._server and seal == self.machine.seals[self._server - 1] else None

    def _write(self, name: str, text: str) -> None:
        hidden = self.directory / "in" / f".{name}"
        hidden.write_text(text)
        hidden.rename(self.directory / "in" / name)

    def _read(self, name: str) -> str:
        return self._bytes(name, LONGEST_FILE).decode(errors="replace").strip()

    def _bytes(self, name: str, most: int, *, from_the_end: bool = False) -> bytes:
        """The file's content; empty unless it is a regular file."""
        with opened(self.directory / "out" / name) as file:
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
        with opened(self.directory / "out" / name) as file:
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


def keep_beating(control: Control) -> None:
    """Writes a heartbeat from a thread while this process lives."""

    def beat() -> None:
        count = 0
        while True:
            count += 1
            control.beat(count)
            time.sleep(HEARTBEAT_SECONDS)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
