"""The emulator as engine and hub: a separate program beside this package, controlled by its command line."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paceline.core import Arm, Model, Scheme, Server
from paceline.engines import ENGINES
from paceline.engines.adapter import Emulator
from paceline.engines.model_rules import LAYERS_OF_THE_TARGET
from paceline.measure import pod
from paceline.measure.machine import EMULATED_RELEASE, EMULATED_SPEED
from paceline.measure.ports import LOOPBACK, any_free
from paceline.plan.speeds import Size, alone, size_in_config, size_in_name

PACKAGE = "paceline_emulator"
GENERIC = "generic"
GENERIC_SPEED = 100.0
"""Output tokens per second of one request, alone, in the emulator's generic profile."""
HUB_SECONDS = 30.0


class EmulatorError(RuntimeError):
    """The emulator is missing or does not answer."""


def command(server: Server) -> tuple[str, ...]:
    """The command of the engine's emulator. Raises EmulatorError."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise EmulatorError("--emulated needs the emulator, a package of its own: pip install ./paceline_emulator")
    emulator = _emulator(server)
    return (sys.executable, "-m", emulator.module, *emulator.words)


def emulator_variables(server: Server) -> Mapping[str, str]:
    """Environment variables of the emulator's servers."""
    version = server.engine.version
    return {EMULATED_RELEASE: version} if version in _emulator(server).releases else {}


def _emulator(server: Server) -> Emulator:
    found = ENGINES[server.engine.type].emulator
    if found is None:
        emulated = ", ".join(engine for engine, row in ENGINES.items() if row.emulator)
        raise EmulatorError(f"--emulated: {server.engine.type} is not emulated; there are {emulated}")
    return found


def mark(server: Server, place: Path, size: Size | None) -> tuple[str, Mapping[str, str]]:
    """The first sentence of all output of an emulated run, and variables for its servers. `place` has the target;
    `size`: given by the user or found in the name, or None. Raises EmulatorError."""
    module = _emulator(server).profiles
    asked = subprocess.run([sys.executable, "-m", module, str(place)], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise EmulatorError(f"the emulator cannot read {place}: {asked.stderr.strip().rpartition(chr(10))[2]}")
    source = server.target.source
    if asked.stdout.strip() != GENERIC:
        return f"Emulated with published speeds of {source}: no model runs", {}
    config = json.loads((place / "config.json").read_text())
    size = size or size_in_config(config, source) or size_in_name(source)
    if size is None:
        raise EmulatorError(f"{source}: neither its name nor its config.json says its size; give --emulated-size 70B")
    speed = alone(size, server.accelerator)
    sentence = (
        f"Emulated with invented speeds of a generic {size} model, {speed:.0f} tokens/s for one request: nothing is "
        f"published about {source}, and these numbers say nothing about it"
    )
    return sentence, {EMULATED_SPEED: f"{speed / GENERIC_SPEED:.4g}"}


def kinds_on_hub(target: Model, arms: Iterable[Arm]) -> dict[str, str]:
    """Repository on the hub → kind of target, or algorithm of the head."""
    drafts = [arm.draft for arm in arms if arm.draft]
    own_layers = any(draft.model is None and draft.algorithm in LAYERS_OF_THE_TARGET for draft in drafts)
    heads = {draft.model: draft.algorithm for draft in drafts if draft.model}
    models = {target: "target-with-mtp" if own_layers else "target"}
    models |= {head: algorithm for head, algorithm in heads.items() if head != target}
    return {one.address.name: kind for one, kind in models.items() if one.address.scheme is Scheme.HUB}


@contextmanager
def hub(folder: Path, lock: int, kinds: Mapping[str, str], size: Size | None) -> Iterator[Mapping[str, str]]:
    """The environment in which a prefetch uses the emulator's hub, which serves models with real shapes and random
    weights, and invents the models of `kinds` that it does not know. Raises EmulatorError."""
    port, log = any_free(), folder / "hub.log"
    invented = [f"--invent={name}={kind}:{size.total}" for name, kind in kinds.items()] if size else []
    program = ["python", "-m", f"{PACKAGE}.hub", "--host", LOOPBACK, "--port", str(port), *invented]
    process = pod.run(program, os.environ, log, lock)
    url = f"http://{LOOPBACK}:{port}"
    try:
        deadline = time.monotonic() + HUB_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise EmulatorError(f"the emulator's hub does not answer: {log}")
            time.sleep(0.1)
        if unknown := [name for name in kinds if not _has(url, name)]:
            raise EmulatorError(f"hf://{unknown[0]}: its name does not say the target's size; give --emulated-size 70B")
        own = {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "NO_PROXY": LOOPBACK}
        yield {**{key: value for key, value in os.environ.items() if key != "HF_TOKEN"}, **own}
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    return _status(url) is not None


def _has(url: str, repository: str) -> bool:
    return _status(f"{url}/api/models/{repository}") == 200


def _status(url: str) -> int | None:
    """The HTTP status; None if nothing listens there."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=2) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None
