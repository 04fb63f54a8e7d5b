"""A server that is replaced finishes the requests under way: what each engine does on SIGTERM, and what it is given."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.example import DEPLOYED, SETTINGS, server

from paceline.core import BASELINE, Arm
from paceline.render.serving import ENDPOINT_REMOVAL_SECONDS, LONGEST_GENERATION_SECONDS, template

BASE = Arm(name=BASELINE)


@pytest.mark.parametrize(
    ("engine", "version", "interrupted", "told", "teardown"),
    [
        # It waits for every request without limit; polls of 5 s, 15 s for the schedulers
        # (srt/managers/tokenizer_manager.py:3508-3571 of 0.5.23). Only SIGINT, which it leaves to uvicorn
        # (server.py, handle_exit), closes the connections that clients keep.
        ("SGLang", "0.5.23", "sglang[.]launch_server", (), 20),
        # The same (sgl_jax/srt/managers/tokenizer_manager.py:1089 of 0.1.0rc0).
        ("SGLangJAX", "0.1.0rc0", "sgl_jax[.]launch_server", (), 20),
        # It aborts them unless it is told for how long to wait (entrypoints/launchers/launcher.py:269 of 0.33.0).
        ("vLLM", "0.33.0", "", ("--shutdown-timeout", str(LONGEST_GENERATION_SECONDS)), 15),
    ],
)
def test_requests_under_way_are_finished(
    engine: str, version: str, interrupted: str, told: tuple[str, ...], teardown: int
) -> None:
    """First no endpoint sends anything new, then it is told to end, and has the time that it needs."""
    asked = server()
    asked = replace(asked, engine=replace(asked.engine, type=engine, version=version, args=()))
    pod = template(DEPLOYED, "latency", asked, BASE, "r1", SETTINGS)["spec"]
    (container,) = pod["containers"]
    before = container["lifecycle"]["preStop"]
    if interrupted:
        script = before["exec"]["command"][2]
        assert script.startswith(f"sleep {ENDPOINT_REMOVAL_SECONDS}; ")
        assert f"'{interrupted}'" in script
        assert any(re.fullmatch(interrupted, word) for word in container["command"])
    else:
        assert before == {"sleep": {"seconds": ENDPOINT_REMOVAL_SECONDS}}
    command = " ".join(container["command"])
    assert " ".join(told) in command
    assert ("--shutdown-timeout" in command) is bool(told)
    needed = ENDPOINT_REMOVAL_SECONDS + LONGEST_GENERATION_SECONDS + teardown
    assert pod["terminationGracePeriodSeconds"] >= needed


def test_the_engines_process_alone_is_interrupted() -> None:
    """And not the hook's own processes, which name it too."""
    pod = template(DEPLOYED, "latency", server(), BASE, "r1", SETTINGS)["spec"]
    hook = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    waits = "import signal, sys; print(flush=True); signal.sigwait({signal.SIGINT}); sys.exit(42)"
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}); "
    name = f"unique{Path(__file__).stat().st_ino}.launch_server"
    with (
        subprocess.Popen([sys.executable, "-c", block + waits, name], stdout=subprocess.PIPE) as engine,
        subprocess.Popen([sys.executable, "-c", block + waits, f"{name}_too"], stdout=subprocess.PIPE) as other,
    ):
        for process in (engine, other):
            assert process.stdout
            process.stdout.readline()
        script = hook[2].replace("sleep 5", ":").replace("sglang[.]launch_server", name.replace(".", "[.]"))
        assert subprocess.run([*hook[:2], script], timeout=20).returncode == 0
        assert engine.wait(10) == 42
        assert other.poll() is None
        other.kill()
