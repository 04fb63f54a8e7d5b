"""The emulator in place of engines and of the hub: a program of its own beside this package, told by its command."""

import importlib.util
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paceline.core import Server
from paceline.measure import pod
from paceline.measure.machine import EMULATED_RELEASE
from paceline.measure.ports import LOOPBACK, any_free

PACKAGE = "paceline_emulator"
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "SGLang": (sys.executable, "-m", PACKAGE),
    "SGLangJAX": (sys.executable, "-m", f"{PACKAGE}.sglang_jax"),
    "VLLM": (sys.executable, "-m", f"{PACKAGE}.vllm", "serve"),
}
OLDER = ("0.4.5", "0.5.6")
"""Releases of SGLang that it can be beside its newest."""
HUB_SECONDS = 30.0


class EmulatorError(RuntimeError):
    """It is not there, or it does not answer."""


def command(server: Server) -> tuple[str, ...]:
    """Raises EmulatorError."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise EmulatorError("--emulated needs the emulator, a package of its own: pip install ./paceline_emulator")
    if server.engine.name not in PROGRAMS:
        raise EmulatorError(f"--emulated: {server.engine.name} is not emulated; there are {', '.join(PROGRAMS)}")
    return PROGRAMS[server.engine.name]


def variables(server: Server) -> Mapping[str, str]:
    """Of its servers."""
    older = server.engine.name == "SGLang" and server.engine.version in OLDER
    return {EMULATED_RELEASE: server.engine.version} if older else {}


@contextmanager
def hub(folder: Path, lock: int) -> Iterator[Mapping[str, str]]:
    """The environment in which a prefetch asks the emulator's hub, which serves models of true shape with noise for
    weights. Raises EmulatorError."""
    port, log = any_free(), folder / "hub.log"
    program = ["python", "-m", f"{PACKAGE}.hub", "--host", LOOPBACK, "--port", str(port)]
    process = pod.run(program, os.environ, log, lock)
    url = f"http://{LOOPBACK}:{port}"
    try:
        deadline = time.monotonic() + HUB_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise EmulatorError(f"the emulator's hub does not answer: {log}")
            time.sleep(0.1)
        own = {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "NO_PROXY": LOOPBACK}
        yield {**{key: value for key, value in os.environ.items() if key != "HF_TOKEN"}, **own}
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
