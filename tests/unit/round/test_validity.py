"""Servers that misbehave, each in one way, in real rounds: what is seen of it, and that no verdict comes of it.

The table is explained in docs/validity.md. A proxy in front of the emulator does the misbehaving (`proxy.py`), so the
wrapper, SGLang's own client, the judge and the gate are the real ones. Several rounds run beside each other: they are
slow and idle.
"""

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.running import free_port
from tests.support.verdicts import concluded, outcome, question, recorded
from tests.unit.round.pod import Arms, Outcome, begin, workload, write_models
from tests.unit.round.test_round import emulated

from paceline.core import Workload
from paceline.evidence import ArmCommand, Judged, RoundPlan

PROXY = Path(__file__).with_name("proxy.py")
REQUESTS, TOKENS = 4, 24
FOUR = tuple(workload(name, 1, REQUESTS, TOKENS) for name in ("code", "chat", "swe", "terminal"))
ONE = FOUR[:1]
TWICE = workload("code", 2, 6, TOKENS)
AGAIN = (dataclasses.replace(TWICE, concurrency=1), TWICE)
"""The same prompts twice: the second time a cache that was not emptied has them."""

ANSWERS = {
    "an_error_in_place_of_text": "2 of 4 requests completed",
    "an_error_behind_some_text": "3 of 4 requests completed",
    "a_connection_that_breaks": "3 of 4 requests completed",
    "a_stream_that_ends_early": "3 of 4 requests completed",
}
LOST = {
    "every_second_request_fails": "2 of 4 requests completed",
    "no_such_page": "0 of 4 requests completed",
    "shorter_answers": "48 output tokens, but 96 on the baseline: in 4 answers they may differ by 60%",
    "retractions": "the server retracted 4 requests",
}
NUMBERS = {
    "no_verify_calls": "no speculation was running: no verify calls",
    "verify_calls_that_are_no_number": "no speculation was running: no verify calls",
    "no_acceptance_length": "no speculation was running: no acceptance length",
    "an_acceptance_length_that_is_no_number": "no speculation was running: no acceptance length",
}
SERVERS = {
    "another_model": "the server serves other, not pair",
    "another_tree": "the server runs with speculative_num_steps=1, not 3",
    "speculation_in_words_alone": "no speculation was running: no verify calls",
    "a_restart": r"code@1: 4 requests were answered, but the server counted -?\d+: it was restarted, or another server "
    r"answered",
    "other_traffic": "code@1: 4 requests were answered, but the server counted 5: it received other requests",
}
CACHE = {
    "a_cache_that_is_not_emptied": r"code@2: \d+ of \d+ prompt tokens came from a cache that had just been emptied; "
    r"its prompts have at most \d+ in common",
}
GOOD = ("through", "a_slow_gpu")
SEEN = {**ANSWERS, **LOST, **NUMBERS, **SERVERS, **CACHE}
"""What is done → what the evidence says of it."""


def arms(models: Path, port: int, ways: Sequence[str], *, together: bool) -> Arms:
    """The baseline, and a candidate for each way; or one candidate that has another way on each workload."""
    words = {
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": str(models / "head"),
        "--speculative-num-steps": "3",
        "--speculative-eagle-topk": "4",
        "--speculative-num-draft-tokens": "8",
    }
    wide = tuple(word for pair in words.items() for word in pair)
    shallow = tuple({"3": "1", "4": "1", "8": "2"}.get(word, word) for word in wide)
    started = {"another_tree": shallow, "speculation_in_words_alone": ()}

    def behind(name: str, ways: str) -> ArmCommand:
        real = emulated(models, 0, name, *started.get(name, wide))
        asked = emulated(models, 0, name, *wide, speculative_num_steps=3, speculative_num_draft_tokens=8)
        at = real.argv.index("--port")
        argv = (sys.executable, str(PROXY), ways, "--port", str(port), "--", *real.argv[:at], *real.argv[at + 2 :])
        return dataclasses.replace(asked, argv=argv)

    candidates = [behind("candidate", ",".join(ways))] if together else [behind(name, known(name)) for name in ways]
    return (emulated(models, port, "baseline", speculative_algorithm=None), *candidates)


def known(name: str) -> str:
    """Another tree is started as such: nothing stands before it."""
    return "through" if name == "another_tree" else name


@dataclasses.dataclass(frozen=True)
class Seen:
    """A round, and where in it something was done."""

    round: Outcome
    arm: str
    workload: Workload

    @property
    def judged(self) -> Judged:
        return self.round.judged[self.arm, self.workload.name]

    @property
    def plan(self) -> RoundPlan:
        """Of this arm and workload alone, beside the baseline."""
        arms = tuple(arm for arm in self.round.plan.arms if arm.name in ("baseline", self.arm))
        return dataclasses.replace(self.round.plan, arms=arms, workloads=(self.workload,))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Seen]]:
    """What was done → where it is to be seen."""
    names = (*SERVERS, *GOOD)
    rounds: list[tuple[Sequence[str], tuple[Workload, ...], bool]] = [
        *((tuple(ways), FOUR, True) for ways in (ANSWERS, LOST, NUMBERS)),
        (tuple(CACHE), AGAIN, False),
        (names[:4], ONE, False),
        (names[4:], ONE, False),
    ]
    found: dict[str, Seen] = {}
    with ExitStack() as stack:
        pods = []
        for ways, workloads, together in rounds:
            models, port = write_models(tmp_path_factory.mktemp("round")), free_port()
            started = arms(models, port, ways, together=together)
            pods.append(begin(models, port, started, *workloads, PACELINE_HEARTBEAT_SECONDS="60"))
            stack.callback(pods[-1].end)
        for (ways, workloads, together), pod in zip(rounds, pods, strict=True):
            outcome = pod.finish()
            assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log + outcome.message
            for place, way in enumerate(ways):
                where = workloads[place] if together else workloads[-1]
                found[way] = Seen(outcome, "candidate" if together else way, where)
        yield found


@pytest.mark.xdist_group("validity")
@pytest.mark.parametrize("what", SEEN)
def test_what_misbehaves_is_seen_and_no_verdict_comes_of_it(seen: Mapping[str, Seen], what: str) -> None:
    found = seen[what]
    assert re.fullmatch(SEEN[what], found.judged.why), found.round.log
    assert not found.judged.valid
    assert found.round.judged["baseline", found.workload.name].valid

    spec = question(found.arm, found.plan.workloads)
    plans = [dataclasses.replace(found.plan, round=number) for number in range(2)]
    conclusion = concluded(spec, [recorded(plan, found.round.result) for plan in plans])
    assert conclusion is not None
    assert outcome(conclusion) == "Error"
    assert found.judged.why in conclusion.message


@pytest.mark.xdist_group("validity")
@pytest.mark.parametrize("what", GOOD)
def test_what_does_its_work_is_evidence(seen: Mapping[str, Seen], what: str) -> None:
    """Slow, too: in one round nobody can tell a slow GPU from a slow candidate. In several it is noise, as arms of a
    round share their GPUs (`test_no_false_verdict.py`)."""
    assert {key: one.why for key, one in seen[what].round.judged.items() if key[0] == what and not one.valid} == {}


@pytest.mark.xdist_group("validity")
def test_answers_that_were_all_cut_are_said_to_show_nothing_by_their_number(seen: Mapping[str, Seen]) -> None:
    found = seen["through"]
    assert found.judged.point is not None
    assert found.judged.point.output_tokens == REQUESTS * TOKENS
    notes = recorded(found.plan, found.round.result)["notes"]
    of_others = [note for note in notes if note.startswith("acceptance by position of ")]
    assert not any(note.startswith("acceptance by position of through ") for note in of_others)
    assert [note for note in notes if note not in of_others] == [
        "every answer reached maxTokens on code@1: equal token counts prove nothing there"
    ]
