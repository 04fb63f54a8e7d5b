"""How deep an engine drafts that chooses so for itself is asked while a load runs."""

import dataclasses
import time
from collections.abc import Callable

import pytest
from tests.support.rounds import arm_command
from tests.unit.round.pod import CODE_1

from paceline.engines import ENGINES
from paceline.pods.round import watch
from paceline.pods.round.steps import SendLoad, ServerFailed

SGLANG, VLLM = ENGINES["SGLang"].probe("0.5.23"), ENGINES["vLLM"].probe("0.33.0")
CHOOSES = arm_command("adaptive", engine_chooses_depth=True)
FIXED = dataclasses.replace(CHOOSES, engine_chooses_depth=False)
PAGE = 'sglang:spec_num_draft_tokens{{tp_rank="0"}} {}\n'.format


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(watch, "EVERY_SECONDS", 0.01)


def pages(*bodies: str | ServerFailed) -> tuple[list[str], Callable[[str], str]]:
    """Of a server: which were asked for, and what it gives, the last one for ever."""
    asked: list[str] = []

    def get(path: str) -> str:
        asked.append(path)
        found = bodies[min(len(asked), len(bodies)) - 1]
        if isinstance(found, ServerFailed):
            raise found
        return found

    return asked, get


def depth(load: SendLoad, get: Callable[[str], str], probe: object = SGLANG) -> float | None:
    with watch.depth(load, probe, get) as samples:  # type: ignore[arg-type]
        time.sleep(0.3)
    return samples.mean


def test_the_mean_of_what_it_says_without_the_root() -> None:
    """A gauge that is still 0 says nothing, and a page that does not come is no reason to end the load."""
    asked, get = pages(PAGE("0.0"), ServerFailed("no"), PAGE("6.0"))
    assert depth(SendLoad(CHOOSES, CODE_1), get) == 5.0
    assert len(asked) > 3
    assert depth(SendLoad(CHOOSES, CODE_1), pages(PAGE("1.0"))[1]) == 0.0
    assert depth(SendLoad(CHOOSES, CODE_1), pages(PAGE("0.0"))[1]) is None


@pytest.mark.parametrize(
    ("load", "probe"),
    [
        (SendLoad(FIXED, CODE_1), SGLANG),
        (SendLoad(CHOOSES, CODE_1, window=1), SGLANG),
        (SendLoad(CHOOSES, CODE_1), VLLM),
    ],
)
def test_no_other_arm_is_asked_while_it_is_measured(load: SendLoad, probe: object) -> None:
    """Nor any whose engine counts it."""
    asked, get = pages(PAGE("6.0"))
    assert depth(load, get, probe) is None
    assert asked == []
