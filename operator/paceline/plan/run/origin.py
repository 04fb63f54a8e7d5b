"""Distinguishes rounds that a run measured itself from those it took over from another run (0033)."""

from collections.abc import Iterable

from paceline.api.round import Round
from paceline.core.text import count
from paceline.plan.run.evidence import Evidence


def own(records: Iterable[Round]) -> tuple[Round, ...]:
    """Rounds that held accelerators for this run."""
    return tuple(record for record in records if not record.run and not record.imported)


def without_a_cluster(evidence: Evidence) -> str:
    """For the end of a verdict's message: how many of its rounds were measured without a cluster; "" if none."""
    brought = sum(record.imported for record in evidence.results)
    return f"{count(brought, 'round')} measured without a cluster" if brought else ""


def judged_again(evidence: Evidence) -> str:
    """For the end of a verdict's message: the runs whose rounds it judges; "" if it measured all rounds itself."""
    sources = [record.run for record in evidence.records if record.run]
    if not sources:
        return ""
    measured = sum(1 for record in own(evidence.records) if not record.error)
    names = " and ".join(dict.fromkeys(sources))
    beside = f", and on {count(measured, 'round')} of its own" if measured else "; no further round was measured"
    return f"judged again on {count(len(sources), 'round')} of {names}{beside}"
