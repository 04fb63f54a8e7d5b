"""Each way in which a server fails has its name; and every name is told to who reads a status."""

import pytest

from paceline.api import round as recorded
from paceline.api.crd import schema
from paceline.evidence.failures import Failure, of_server


@pytest.mark.parametrize(
    ("exit_code", "error", "seen", "failure"),
    [
        (2, "launch_server.py: error: unrecognized arguments: --fast-please", None, Failure.ServerArguments),
        (1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", None, Failure.OutOfMemory),
        (
            1,
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            None,
            Failure.OutOfMemory,
        ),
        (None, "code@32: torch.cuda.OutOfMemoryError", None, Failure.OutOfMemory),
        (0, "the scheduler died", None, Failure.ServerCrashed),
        (-9, "CUDA error: an illegal memory access was encountered", None, Failure.ServerCrashed),
        (None, "not ready after 1800 s", Failure.StartTimeout, Failure.StartTimeout),
        (None, "code@32: timed out after 1800 s", Failure.TimedOut, Failure.TimedOut),
        (1, "the scheduler died", Failure.TimedOut, Failure.ServerCrashed),  # it had ended when the client gave up
        (None, "the words of a message decide nothing: timed out after", None, Failure.NotMeasured),
        (None, "the server runs with speculative_num_steps=5, not 3", None, Failure.NotMeasured),
        (None, "", None, None),
    ],
)
def test_how_a_server_failed(exit_code: int | None, error: str, seen: Failure | None, failure: Failure | None) -> None:
    assert of_server(exit_code, error, seen) is failure


def test_status_explains_every_reason() -> None:
    """Of a round without a result, of a server, or of both."""
    told = "".join(
        schema(record)["properties"]["reason"]["description"] for record in (recorded.Round, recorded.ReplicateRecord)
    )
    assert [failure.name for failure in Failure if failure.name not in told] == []
