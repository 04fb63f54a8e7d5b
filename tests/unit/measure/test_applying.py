"""What a person is told about the file in a cluster."""

from datetime import UTC, datetime

from tests.support import imported
from tests.support.messages import Says

from paceline.measure.applying import applying

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_kubectl_applies_it(says: Says) -> None:
    (line,) = applying("run.yaml", imported.file(), NOW)
    assert line.startswith("kubectl apply -f run.yaml  ")
    says(line)


def test_what_a_cluster_would_refuse_is_said_at_once(says: Says) -> None:
    """By the operator's own words."""
    run = imported.file(change=lambda result: result)
    (line,) = applying("run.yaml", run, NOW)
    assert "spec.engine.image" in line
    says(line)


def test_of_a_run_that_brings_no_rounds_nothing_is_said() -> None:
    run = imported.file()
    del run["spec"]["measured"]
    assert applying("run.yaml", run, NOW) == ()


def test_a_schedule_that_a_search_has_written_is_no_evidence_of_a_pool(says: Says) -> None:
    """A pool asks about one at loads beside its own, and only after a search."""
    run = imported.file()
    arms = run["spec"]["arms"]
    run["spec"]["arms"] = [*arms, {**arms[1], "name": "second"}]
    says(*applying("run.yaml", run, NOW, searched=True))
