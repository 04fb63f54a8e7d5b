"""A search in the report: the state of its arms, its cost relative to the whole grid, and the next step."""

from collections.abc import Iterator

from paceline.api.run_status import BenchmarkRunStatus, RunVerdict, SearchedArm, SearchProgress
from paceline.core import BASELINE, Purpose, purpose_of
from paceline.core.manifest import Object
from paceline.core.text import count
from paceline.report import read
from paceline.report.search_model import SearchArm, SearchView
from paceline.report.text import interval_text, ratio_text

_COMPARED = 8
"""Maximum arms whose settings fit side by side on a page."""
ASKED = (
    "Nothing is asked of a candidate here: a Search finds which one is worth a comparison with the baseline. The "
    "best of many is always lucky, too, so what it finds goes to a Gate, which decides on it with other prompts. "
    "Intervals are of 95 %, if the noise is what the points show."
)
_SHAPES = ("numSteps", "topK", "numDraftTokens")


def searches(manifest: Object) -> bool:
    return purpose_of(manifest["spec"]) is Purpose.SEARCH


def measured_first(manifest: Object, status: BenchmarkRunStatus) -> Object:
    """The run with only the baseline and the measured arms, best first: the other arms have no results."""
    arms = {arm["name"]: arm for arm in manifest["spec"]["arms"]}
    stood = [one.arm for one in (status.search or SearchProgress()).arms if one.arm in arms]
    names = dict.fromkeys([manifest["spec"]["arms"][0]["name"], *stood])
    return {**manifest, "spec": {**manifest["spec"], "arms": [arms[name] for name in names]}}


def with_first_arms(manifest: Object) -> Object:
    """The run with only the first arms that fit side by side on a page."""
    return {**manifest, "spec": {**manifest["spec"], "arms": manifest["spec"]["arms"][:_COMPARED]}}


def search(manifest: Object, status: BenchmarkRunStatus) -> SearchView:
    now, spec = status.search or SearchProgress(), manifest["spec"]
    shapes = {arm["name"]: shape(arm) for arm in spec["arms"]}
    candidates = now.candidates or len(spec["arms"]) - 1
    return SearchView(
        candidates=candidates,
        measured=sum(arm.arm != BASELINE for arm in now.arms),
        points=now.points,
        grid_points=(candidates + 1) * len(spec["workloads"]),
        server_starts=now.server_starts,
        grid_starts=candidates + 1,
        next=now.next,
        arms=tuple(_arm(arm, shapes.get(arm.arm, "")) for arm in now.arms),
    )


def _arm(arm: SearchedArm, shape: str) -> SearchArm:
    return SearchArm(
        name=arm.arm,
        shape=shape,
        state=arm.state,
        points=arm.points,
        speed=read.ordered_bounds(arm.ratio, arm.lower, arm.upper),
        why=arm.why,
    )


def shape(arm: Object) -> str:
    """For example 3 steps, top 4, 8 tokens."""
    if tree := arm.get("tree"):
        steps, top_k, tokens = (tree.get(key) for key in _SHAPES)
        return f"{steps} deep, {top_k} wide, {tokens} tokens"
    return "the engine's own depth" if arm.get("adaptive") is not None else ""


def heading(verdict: RunVerdict) -> str:
    """The heading of a search's result; empty for a verdict with an outcome."""
    return "" if verdict.outcome else f"Found {verdict.winner}" if verdict.winner else "Searching"


def search_view(search: SearchView, status: BenchmarkRunStatus) -> str:
    return f"{(status.verdict and status.verdict.message) or '; '.join(_so_far(search))}."


def _so_far(found: SearchView) -> Iterator[str]:
    yield (
        f"{found.measured} of {found.candidates} candidates measured, in {count(found.points, 'point')} of "
        f"{count(found.server_starts, 'server start')}"
    )
    if best := next((arm for arm in found.arms if arm.state == "best"), None):
        speed = f", {ratio_text(best.speed.ratio)} ({interval_text(best.speed)})" if best.speed else ""
        yield f"best so far: {best.name}{speed}"
    if found.next:
        yield f"next: {found.next}"
