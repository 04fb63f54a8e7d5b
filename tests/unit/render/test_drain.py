"""A server that is replaced finishes the requests under way: what each engine does on SIGTERM, and what it is given."""

from dataclasses import replace

import pytest
from tests.support.example import DEPLOYED, SETTINGS, server

from paceline.core import BASELINE, Arm
from paceline.render.serving import ENDPOINT_REMOVAL_SECONDS, LONGEST_GENERATION_SECONDS, template

BASE = Arm(name=BASELINE)


@pytest.mark.parametrize(
    ("engine", "version", "told", "teardown"),
    [
        # It waits for every request without limit; polls of 5 s, 15 s for the schedulers
        # (srt/managers/tokenizer_manager.py:3508-3571 of 0.5.23).
        ("SGLang", "0.5.23", (), 20),
        # The same (sgl_jax/srt/managers/tokenizer_manager.py:1089 of 0.1.0rc0).
        ("SGLangJAX", "0.1.0rc0", (), 20),
        # It aborts them unless it is told for how long to wait (entrypoints/launchers/launcher.py:269 of 0.33.0).
        ("VLLM", "0.33.0", ("--shutdown-timeout", str(LONGEST_GENERATION_SECONDS)), 15),
    ],
)
def test_requests_under_way_are_finished(engine: str, version: str, told: tuple[str, ...], teardown: int) -> None:
    """First no endpoint sends anything new, then it is told to end, and has the time that it needs."""
    asked = server()
    asked = replace(asked, engine=replace(asked.engine, name=engine, version=version, args=()))
    pod = template(DEPLOYED, "latency", asked, BASE, "r1", SETTINGS)["spec"]
    (container,) = pod["containers"]
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": ENDPOINT_REMOVAL_SECONDS}}
    command = " ".join(container["command"])
    assert " ".join(told) in command
    assert ("--shutdown-timeout" in command) is bool(told)
    needed = ENDPOINT_REMOVAL_SECONDS + LONGEST_GENERATION_SECONDS + teardown
    assert pod["terminationGracePeriodSeconds"] >= needed
