"""What is held back: a revision that was taken off, on which evidence it had come, and what lets it serve again."""

from datetime import timedelta

from paceline.api.status import Hold
from paceline.core import BASELINE
from paceline.plan.deployment.snapshot import Pool
from paceline.plan.step import parse_time


def hold(pool: Pool) -> Hold | None:
    """None where nothing is held. While suspended the question is the one that was, whatever the spec says by now."""
    held = pool.remembered.hold
    return None if held and not suspended(pool) and _released(pool, held) else held


def held_revision(pool: Pool) -> str | None:
    held = hold(pool)
    return held.revision if held else None


def baseline_held(pool: Pool) -> bool:
    """Nothing of what the spec renders can be served: its candidates are measured against its baseline."""
    held = hold(pool)
    return held is not None and held.arm == BASELINE


def way_out(pool: Pool) -> str:
    """For a person, where something is held."""
    what = "change the spec" if baseline_held(pool) else "newer evidence releases it"
    return f"{what}, or annotate retry.paceline.dev/{pool.name}=TOKEN (TOKEN: any word) to try it again"


def suspended(pool: Pool) -> bool:
    spec = pool.snapshot.spec
    return spec is not None and spec.suspend


def _released(pool: Pool, held: Hold) -> bool:
    """By another revision, by more time to start than it had, and for a candidate by another question or a run that
    has ended since."""
    assert pool.snapshot.spec is not None
    if held.revision not in {pool.revision(arm) for arm in pool.spec.arms}:
        return True
    missed = held.deadline_seconds
    if missed and pool.snapshot.spec.promotion.progress_deadline > timedelta(seconds=missed):
        return True
    if held.arm == BASELINE:
        return False
    target = pool.remembered.target
    # An older release has written the question to the target alone, and it had the gate in it.
    asked_then = held.fingerprint or (target.fingerprint if target else "")
    return asked_then not in (pool.fingerprint, pool.question) or _newer_evidence(pool, held)


def _newer_evidence(pool: Pool, held: Hold) -> bool:
    """By its time and not by its name: a run that was deleted is made again under the same one. By that of its rounds:
    those that are judged again are no newer for that."""
    ends = [record.finished_at for record in pool.decided.results] if pool.decided else []
    return bool(ends) and max(map(parse_time, ends)) > parse_time(held.since)
