"""`kubectl paceline retry` and the other requests, beside the real operator in virtual time."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.fault.stories import BOTH_PROMOTED, HELD, PROMOTED, Story, tell_once
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE
from tests.support.memory import MemoryApi
from tests.support.messages import Says

from paceline.cli import send_request
from paceline.kube import Manifest


@dataclass(frozen=True, kw_only=True)
class Done:
    """`code` is the exit code; with an `error` it is 1."""

    code: int
    error: str
    found: Manifest

    @property
    def annotations(self) -> Manifest:
        return dict(self.found["metadata"].get("annotations") or {})

    @property
    def pool(self) -> Manifest:
        entry: Manifest = self.found["status"]["pools"][0]
        return entry


def asked(story: Story, *commands: Sequence[str], operator: bool = True) -> Done:
    """What came of these commands, one after another, in the world in which the story was told."""
    parser = argparse.ArgumentParser()
    send_request.add(parser.add_subparsers(dest="command"))
    before = tell_once(story)

    async def told() -> Done:
        code, error = 0, ""
        async with before.twin() as world:
            if operator:
                world.operate()
            for words in commands:
                try:
                    code = await send_request.ask(MemoryApi(world.cluster), NAMESPACE, parser.parse_args(words))
                except ValueError as refused:
                    code, error = 1, str(refused)
            return Done(code=code, error=error, found=world.found())

    return run(told())


def test_a_hold_is_released_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    done = asked(HELD, ("retry", NAME, "--token", "the-node-is-mended"))
    assert (done.code, done.pool["internal"]["handled"]["retry"]) == (0, "the-node-is-mended")
    assert "wide (NotReady)" in capsys.readouterr().out


def test_a_promoted_candidate_is_rolled_back_and_promoted_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a revision: to what served before, and back to the winner."""
    done = asked(PROMOTED, ("rollback",), ("promote",))
    back, again = capsys.readouterr().out.splitlines()
    assert done.code == 0, done.error
    assert back.startswith("latency: held (RolledBack): ")
    assert "; baseline at " in back
    assert again.startswith("latency: the hold of wide (RolledBack) ")
    assert done.pool["internal"]["target"]["arm"] == "wide"


def test_each_request_has_a_token_of_its_own() -> None:
    assert len({asked(HELD, ("retry",)).pool["internal"]["handled"]["retry"] for _ in range(2)}) == 2


def test_json_has_the_request_and_the_pool_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(HELD, ("retry", "-o", "json", "--token", "one")).code == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["request"], said["value"], said["handled"]) == ("retry.paceline.dev/latency", "one", True)
    assert (said["pool"]["name"], said["pool"]["internal"]["handled"]) == ("latency", {"retry": "one"})


def test_what_is_refused_is_taken_back(says: Says) -> None:
    """Else it would be carried out on the day on which it can be."""
    done = asked(PROMOTED, ("promote", NAME, "0123456789"))
    assert (done.code, done.annotations) == (1, {})
    says(done.error)


def test_a_refusal_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(PROMOTED, ("promote", NAME, "0123456789", "-o", "json")).code == 1
    said = json.loads(capsys.readouterr().out)
    assert said["handled"] is False
    assert said["refused"].startswith("promotion.mode ")


def test_nothing_to_do_is_said(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    assert asked(PROMOTED, ("retry",)).code == 0
    says(capsys.readouterr().out)


def test_without_waiting_the_request_is_written_and_no_more(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    done = asked(HELD, ("retry", "--no-wait", "--token", "one"), operator=False)
    assert (done.code, done.annotations) == (0, {"retry.paceline.dev/latency": "one"})
    says(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (HELD, ("retry", "--token", "one")),
        (HELD, ("promote-anyway",)),
        (BOTH_PROMOTED, ("retry",)),
        (BOTH_PROMOTED, ("retry", "--pool", "mine")),
        (HELD, ("retry", "--token", "rev@token")),
        (HELD, ("retry", "another")),
    ],
)
def test_what_cannot_be_asked_says_what_to_do(story: Story, words: tuple[str, ...], says: Says) -> None:
    done = asked(story, words, operator=False)
    assert done.code == 1
    says(done.error)


def test_requests_take_each_other_nothing_away() -> None:
    """Each has a field manager of its own: an apply removes what its manager leaves out."""
    both = [("retry", "--pool", pool, "--no-wait", "--token", "one") for pool in ("latency", "throughput")]
    done = asked(BOTH_PROMOTED, *both, operator=False)
    assert done.annotations == {"retry.paceline.dev/latency": "one", "retry.paceline.dev/throughput": "one"}
