"""The client's side of /ctl. The other side, and what each file means, is in `render/wrapper.sh`."""

import shlex
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paceline.engines.keys import ADMIN_KEY, API_KEY
from paceline.engines.last_words import last_words
from paceline.evidence.clocks import Reading, read
from paceline.pods.round.keys import NO_KEYS, Keys
from paceline.pods.round.steps import Ended

HEARTBEAT_SECONDS = 3.0
POLL_SECONDS = 0.1
STOP_SECONDS = 300.0
"""More than the wrapper takes at most: its graces, and the wait for the GPUs' memory."""
ALIVE_SECONDS = 30.0
"""The wrapper writes `alive` at least every second, and every 10 while the driver does not answer it."""
CLOCKS_SECONDS = 15.0
"""More than the 10 after which the wrapper gives nvidia-smi up: it never runs beside a load."""
LONGEST_LINE = 200
FILLED_IN = {f"$({name})": f'"${name}"' for name in (API_KEY, ADMIN_KEY)}
"""As the kubelet fills in what is served; here the shell does that starts the server, so that no file has the key."""


class WrapperError(RuntimeError):
    """The wrapper does not do what it promises: the round cannot go on."""


@dataclass(slots=True)
class Control:
    """A directory shared with the wrapper; when `alive` was last written, and when we first saw that (monotonic)."""

    directory: Path
    keys: Keys = NO_KEYS
    _alive: int = 0
    _seen: float = 0.0

    def wait_for_wrapper(self, seconds: float) -> None:
        """The server's container may come up long after ours: its image is large."""
        self._await("gpus", seconds, "the server's container did not start")

    def start(self, argv: Sequence[str]) -> None:
        """Ask for a server; it is on its way when `start` is gone."""
        for old in ("exit", "stop"):
            (self.directory / old).unlink(missing_ok=True)
        words = (FILLED_IN.get(word) or shlex.quote(word) for word in argv)
        self._tell("start", f"exec {' '.join(words)}\n")

    def has_exited(self) -> bool:
        """The server that was started last, for whatever reason. Raises WrapperError if its container is gone."""
        self.check_wrapper()
        return (self.directory / "exit").exists()

    def check_wrapper(self) -> None:
        """Raises WrapperError where `alive` stands still; as long as there is none, the wrapper has not begun."""
        with suppress(FileNotFoundError):
            written = (self.directory / "alive").stat().st_mtime_ns
            if written != self._alive:
                self._alive, self._seen = written, time.monotonic()
            elif time.monotonic() - self._seen > ALIVE_SECONDS:
                raise WrapperError("the server container has ended")

    def stop(self) -> Ended:
        """End the server, wait until nothing is left of it, and say how it ended."""
        if not self.has_exited():
            self._tell("stop", "")
            self._await("exit", STOP_SECONDS, "the server could not be ended")
        code, _, how = self._read("exit").partition(" ")
        return Ended(None if how == "stopped" else int(code), self.last_words())

    def done(self) -> None:
        self._tell("done", "")

    def beat(self, count: int) -> None:
        self._tell("heartbeat", str(count))

    def gpus(self) -> tuple[str, ...]:
        return tuple(filter(None, self._read("gpus").split(",")))

    def gpu_model(self) -> str | None:
        return self._read("model") or None

    def driver(self) -> str | None:
        return self._read("driver") or None

    def clocks(self) -> tuple[Reading, ...]:
        """How each GPU is right now; nothing without a driver that can be asked, or if it does not answer."""
        if not self.driver():
            return ()
        (self.directory / "clocks").unlink(missing_ok=True)
        self._tell("look", "")
        with suppress(TimeoutError):
            self._await("clocks", CLOCKS_SECONDS, "no clocks", TimeoutError)
        return read(self._read("clocks"))

    def log(self) -> str:
        """Of the server that was started last, since its start; without its keys."""
        return self.keys.hidden_in(self._read("log"))

    def last_words(self) -> str:
        """The line of the server's log that tells why it ended."""
        return last_words(self.log(), LONGEST_LINE)

    def _tell(self, name: str, text: str) -> None:
        hidden = self.directory / f".client-{name}"
        hidden.write_text(text)
        hidden.rename(self.directory / name)

    def _read(self, name: str) -> str:
        try:
            return (self.directory / name).read_text(errors="replace").strip()
        except FileNotFoundError:
            return ""

    def _await(self, name: str, seconds: float, otherwise: str, error: type[Exception] = WrapperError) -> None:
        deadline = time.monotonic() + seconds
        while not (self.directory / name).exists():
            self.check_wrapper()
            if time.monotonic() > deadline:
                raise error(f"{otherwise} in {seconds:.0f} s")
            time.sleep(POLL_SECONDS)


def keep_beating(control: Control) -> None:
    """A heartbeat from a thread of this process for as long as the process lives."""

    def beat() -> None:
        count = 0
        while True:
            count += 1
            control.beat(count)
            time.sleep(HEARTBEAT_SECONDS)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
