"""What a person is told about the file in a cluster."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import imported

from paceline.measure.applying import LARGEST_ANNOTATION, LARGEST_OBJECT, OF_KUBECTL, applying, written

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def padded(size: int) -> dict[str, Any]:
    """A file that kubectl writes in so many bytes."""
    run = {**imported.file(), "status": {"pad": ""}}
    run["status"]["pad"] = "x" * (size - written(run))
    return run


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (LARGEST_ANNOTATION - OF_KUBECTL, "kubectl apply -f run.yaml  evidence in a cluster"),
        (LARGEST_ANNOTATION - OF_KUBECTL + 1, "kubectl apply --server-side -f run.yaml  evidence in a cluster"),
        (LARGEST_OBJECT, "kubectl apply --server-side -f run.yaml  evidence in a cluster"),
        (LARGEST_OBJECT + 1, "no evidence for a cluster: it takes 1400001 bytes, and an API server stores 1400000"),
    ],
)
def test_how_it_is_applied_depends_on_its_size(size: int, said: str) -> None:
    (line,) = applying("run.yaml", padded(size), NOW)
    assert line.startswith(said)


def test_kubectl_writes_some_characters_in_six_bytes() -> None:
    assert written({"a": "x<&>"}) == len('{"a":"x"}') + 18


def test_what_a_cluster_would_refuse_is_said_at_once() -> None:
    """By the operator's own words."""
    run = imported.file(change=lambda result: result)
    (line,) = applying("run.yaml", run, NOW)
    assert line.startswith("no evidence for a cluster: an emulator served, and spec.engine.image is ")


def test_of_a_file_without_messages_nothing_is_said() -> None:
    run = imported.file()
    del run["spec"]["measured"]
    assert applying("run.yaml", run, NOW) == ()


def test_a_schedule_that_a_search_has_written_is_no_evidence_of_a_pool() -> None:
    """A pool asks about one at loads beside its own, and only after a search."""
    run = imported.file()
    arms = run["spec"]["arms"]
    run["spec"]["arms"] = [*arms, {**arms[1], "name": "second"}]
    assert applying("run.yaml", run, NOW, searched=True) == (
        "no evidence for a cluster: a pool compares a schedule only after a search of its own",
    )
