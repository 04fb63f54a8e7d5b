"""The state of a search: which arms are left, which are out and why, and the next step. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from paceline.api.run_status import SearchedArm, SearchProgress
from paceline.core import BASELINE, Bounds
from paceline.core.text import count
from paceline.report import read
from paceline.report.text import change, interval_text, ratio_text

BEST, OPEN, BEHIND, FEW, FAILED = "best", "may be best", "behind", "too few points", "failed"
"""The values of `paceline.search.so_far.State`, which needs numpy."""
_MOST = 6
"""Arms of one kind that are named; the rest are counted."""


def standing_lines(search: SearchProgress, *, going_on: bool = False) -> Iterator[str]:
    """One line for the progress, one for the arms of each kind, and one for the purpose of the current round
    (`going_on`) or the next."""
    yield _measured(search)
    if best := _leader(search):
        yield f"{'best' if best.state == BEST else 'ahead'} so far: {_arm(best, None)}"
    for state, says in _KINDS.items():
        if arms := [arm for arm in search.arms if arm.state == state and arm != best and arm.arm != BASELINE]:
            yield f"{says}: {_listed(arms, best.ratio if best and state == BEHIND else None)}"
    if search.next:
        yield f"{'this round' if going_on else 'next'}: {search.next}"


_KINDS: Mapping[str, str] = {
    OPEN: "may be best",
    BEHIND: "out, behind the best by more than the noise of their points",
    FEW: "measured once",
    FAILED: "out, failed",
}


def _measured(search: SearchProgress) -> str:
    """How much of the grid was measured."""
    arms = sum(arm.arm != BASELINE for arm in search.arms)
    of = f"{arms} of {search.candidates} candidates measured"
    return f"{of}, in {count(search.points, 'point')} of {count(search.server_starts, 'server start')}"


def standing_clause(search: SearchProgress) -> str:
    """Progress and the best arm, in one clause."""
    best = _leader(search)
    return f"{_measured(search)}; ahead so far: {_arm(best, None)}" if best else _measured(search)


def remaining_intervals(search: SearchProgress) -> Mapping[str, Bounds]:
    """Arm → interval for the arms that may still be the best, best first."""
    arms = [arm for arm in search.arms if arm.state in (BEST, OPEN)]
    bounds = {arm.arm: read.ordered_bounds(arm.ratio, arm.lower, arm.upper) for arm in arms}
    return {name: found for name, found in bounds.items() if found}


def _leader(search: SearchProgress) -> SearchedArm | None:
    """The best arm, once an arm has two points; before, the first arm. None also before the baseline is measured."""
    known = [arm for arm in search.arms if arm.ratio is not None or arm.arm == BASELINE]
    best = next((arm for arm in known if arm.state == BEST), None)
    return best or next((arm for arm in known if arm.ratio is not None), None)


def _listed(arms: list[SearchedArm], best: float | None) -> str:
    more = [f"and {len(arms) - _MOST} more"] if len(arms) > _MOST else []
    return ", ".join([*(_arm(arm, best) for arm in arms[:_MOST]), *more])


def _arm(arm: SearchedArm, best: float | None) -> str:
    return " ".join([arm.arm, *_said(arm, best)])


def _said(arm: SearchedArm, best: float | None) -> Iterable[str]:
    """The arm's speed and its distance from the best; or why it failed."""
    if arm.why:
        yield f"({arm.why})"
        return
    if bounds := read.ordered_bounds(arm.ratio, arm.lower, arm.upper):
        yield f"{ratio_text(bounds.ratio)} ({interval_text(bounds)})"
        if best:
            yield f"{change(bounds.ratio / best - 1)}"
