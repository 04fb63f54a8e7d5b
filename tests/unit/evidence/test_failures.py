"""Each way in which a server fails has its name; and every name is told to who reads a status."""

import pytest

from paceline.api import run_status
from paceline.api.crd import schema
from paceline.evidence.failures import Failure, of_server


@pytest.mark.parametrize(
    ("exit_code", "error", "failure"),
    [
        (2, "launch_server.py: error: unrecognized arguments: --fast-please", Failure.ServerArguments),
        (1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", Failure.OutOfMemory),
        (1, "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", Failure.OutOfMemory),
        (None, "code@32: torch.cuda.OutOfMemoryError", Failure.OutOfMemory),
        (0, "the scheduler died", Failure.ServerCrashed),
        (-9, "CUDA error: an illegal memory access was encountered", Failure.ServerCrashed),
        (None, "not ready after 1800 s", Failure.StartTimeout),
        (None, "code@32: timed out after 1800 s", Failure.TimedOut),
        (None, "the server runs with speculative_num_steps=5, not 3", Failure.NotMeasured),
        (None, "", None),
    ],
)
def test_how_a_server_failed(exit_code: int | None, error: str, failure: Failure | None) -> None:
    assert of_server(exit_code, error) is failure


def test_status_explains_every_reason() -> None:
    """Of a round without a result, of a server, or of both."""
    told = "".join(
        schema(record)["properties"]["reason"]["description"] for record in (run_status.Round, run_status.Replicate)
    )
    assert [failure.name for failure in Failure if failure.name not in told] == []
