"""How the benchmark client is told to send a workload."""

from pathlib import Path

from tests.unit.evidence.test_judge import PLAN

from paceline.core import Dataset, Workload
from paceline.pods.round import load

SET = Dataset(name="chat", source="builtin://chat", requests=24, max_tokens=96)


def words(workload: Workload) -> list[str]:
    return load.command(
        PLAN, workload, name="chat", dataset=Path("in"), report=Path("out"), requests=24, tokens=96, rate=workload.rate
    )


def test_at_a_rate_nothing_holds_a_request_back() -> None:
    """The client's times begin when it sends: who waits for a place in it would seem faster than he was."""
    chat = Workload(dataset=Dataset(name="chat", source="builtin://chat", requests=24, max_tokens=96, rate=0.5),
                    concurrency=8)  # fmt: skip
    said = words(chat)
    assert said[said.index("--request-rate") + 1] == "0.5"
    assert "--max-concurrency" not in said


def test_in_a_closed_loop_as_many_as_there_are_places() -> None:
    said = words(Workload(dataset=SET, concurrency=8))
    assert said[said.index("--max-concurrency") + 1] == "8"
    assert "--request-rate" not in said
