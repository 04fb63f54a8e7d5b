"""A BenchmarkRun from its pool's view: question, progress and verdict; and the actions that end or suspend it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from paceline.api import Reason
from paceline.api.run_status import BenchmarkRunStatus, Result, RunProgress, RunVerdict
from paceline.core import BASELINE, INCUMBENT, DeploymentSpec, Purpose, purpose_of
from paceline.core.manifest import Manifest, Object
from paceline.core.names import ABORTED, ATTEMPT, OUTSIDE_WINDOW, SUPERSEDED, SUSPENDED, TOKEN, TRIGGER
from paceline.core.record import kept_status
from paceline.engines.pod_template import SERVER, arm_container
from paceline.evidence import fingerprint, narrowed, question
from paceline.evidence.signature import key_id
from paceline.plan import objects
from paceline.plan.step import Apply, parse_time, timestamp
from paceline.plan.trouble import Trouble
from paceline.render import Owner, benchmark_run

_DECIDING = ("Promote", "Reject")
"""Outcomes that promote one candidate or reject all."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A pool's view of one of its BenchmarkRuns."""

    manifest: Object
    stale: str = ""
    """Why, in a sentence, it does not decide the present question although it asks the same; "" if it may decide."""
    aged: bool = False
    """Its oldest round is older than maxEvidenceAge; a run that the pool relies on does not become stale by this."""

    @cached_property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @cached_property
    def status(self) -> BenchmarkRunStatus:
        return kept_status(BenchmarkRunStatus, self.manifest.get("status"))

    @cached_property
    def verdict(self) -> RunVerdict:
        """`status.verdict`; empty before the verdict."""
        return self.status.verdict or RunVerdict()

    @cached_property
    def pool(self) -> str:
        return str(self.manifest["spec"]["pool"])

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.manifest["spec"]
        return spec

    @cached_property
    def question(self) -> str:
        return question(self.spec)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.spec)

    @cached_property
    def attempt(self) -> int:
        return objects.attempt(self.manifest)

    @cached_property
    def trigger(self) -> str:
        """Why the run was started, as in `core.Trigger`."""
        return objects.trigger(self.manifest)

    @cached_property
    def made_at(self) -> str:
        return str(self.manifest["metadata"]["creationTimestamp"])

    @cached_property
    def finished(self) -> bool:
        return objects.finished(self.manifest)

    @cached_property
    def under_way(self) -> bool:
        return not self.finished and not self.superseded

    @cached_property
    def waits(self) -> bool:
        """Whether no node has room for its round."""
        return self._has(Reason.RunWaiting)

    @cached_property
    def lacks_accelerators_since(self) -> datetime | None:
        """Since when its round has waited for accelerators that no node has free; None if it does not wait for them."""
        progress = self.status.progress or RunProgress()
        waits = self.waits and progress.waits_for_accelerators and progress.unplaced_since
        return parse_time(progress.unplaced_since) if waits else None

    def _has(self, reason: Reason) -> bool:
        return any(condition.reason == reason.text for condition in self.status.conditions)

    @cached_property
    def refused(self) -> Trouble | None:
        """The problem, if the cluster refuses the pod of its round."""
        if not self._has(Reason.RunRefused):
            return None
        progress = self.status.progress or RunProgress()
        since = progress.unplaced_since
        message = f"{self.name} {progress.message}"
        return Trouble(message=message, reason=Reason.PodRefused, since=parse_time(since) if since else None)

    @cached_property
    def suspended(self) -> bool:
        return objects.is_suspended(self.manifest)

    @cached_property
    def opens_at(self) -> str:
        """The annotation of a run that waits for benchmark.window."""
        return objects.opens_at(self.manifest)

    @cached_property
    def outside_window(self) -> bool:
        """Whether the run waits for benchmark.window with no round under way."""
        return bool(self.opens_at) and self._has(Reason.RunOutsideWindow)

    @cached_property
    def superseded(self) -> bool:
        return objects.superseded(self.manifest)

    @cached_property
    def outcome(self) -> str | None:
        """The verdict's outcome; None before the verdict, and for a superseded run."""
        return self.verdict.outcome or None if self.finished else None

    @cached_property
    def searches(self) -> bool:
        return purpose_of(self.spec) is Purpose.SEARCH

    @cached_property
    def found(self) -> str:
        """The candidate that a search found; "" if it found none, and for a run that is not a search."""
        return (self.winner or "") if self.searches and self.finished and not self.outcome else ""

    @cached_property
    def found_none(self) -> bool:
        """Whether this is a search that ended, measured its arms, and found no candidate."""
        return self.searches and self.decides

    @cached_property
    def decides(self) -> bool:
        """Whether its verdict promotes or rejects candidates."""
        return self.outcome in _DECIDING

    @cached_property
    def imported(self) -> bool:
        """Whether the run was measured without a cluster; it then belongs to the person who applied it."""
        return objects.brings_rounds(self.manifest)

    def is_trusted(self, signers: Mapping[str, str]) -> bool:
        """Whether a listed key has signed it, if any is listed (name → PEM)."""
        return not signers or self.status.signer in map(key_id, signers.values())

    @cached_property
    def measured_at(self) -> str:
        """When its latest round ended."""
        return self.status.last_measured_time

    @cached_property
    def winner(self) -> str | None:
        return self.verdict.winner or None

    @cached_property
    def completion_time(self) -> str:
        return self.status.completion_time

    def image_of(self, arm: str) -> str:
        """The image that the arm's servers ran, as reported by the kubelet; "" if not reported."""
        digests = self.status.image_digests
        for one in self.spec["arms"]:
            if one["name"] == arm and one.get("engine"):
                return digests.get(arm_container(arm), "")
        return digests.get(SERVER, "")

    def answers(self, wanted: Mapping[str, Any]) -> bool:
        """Whether its verdict also answers the question of `wanted`, although it compared more candidates by the same
        rule: its winner is a wanted candidate, or all were rejected. With more candidates its bounds are wider."""
        names = {arm["name"] for arm in wanted["arms"]}
        holds = self.winner in names if self.outcome == "Promote" else self.outcome == "Reject"
        return holds and question(narrowed(self.spec, names)) == question(wanted)

    @property
    def beside_incumbent(self) -> bool:
        """Whether it compares its arms with what serves."""
        return bool(self.spec["arms"][-1]["name"] == INCUMBENT)

    @cached_property
    def lost_to_incumbent(self) -> bool:
        """Whether what serves decided it: without that, its rounds may say otherwise."""
        reasons = (verdict.reason for verdict in self.status.arm_verdicts or () if verdict.arm != BASELINE)
        return self.outcome != "Promote" and any("incumbent" in reason.lower() for reason in reasons)

    @cached_property
    def incumbent_failed(self) -> bool:
        """Whether the incumbent's server was shown to fail where the baseline's lived."""
        return any(
            verdict.arm == INCUMBENT and verdict.outcome == "rejected" for verdict in self.status.arm_verdicts or ()
        )

    def ratio(self, arm: str | None) -> Result | None:
        """The mean speed of an arm over all workloads."""
        results = self.status.results or ()
        return next((result for result in results if result.arm == arm and result.workload == "mean"), None)


def suspend(owner: Owner, runs: Iterable[Run]) -> tuple[Apply, ...]:
    """Suspend these runs if they are under way; they keep their rounds."""
    why = "spec.suspend is set"
    return tuple(Apply(annotated(owner, run, {SUSPENDED: "true"}), why) for run in runs if run.under_way)


def close(owner: Owner, runs: Iterable[Run], closed: Mapping[str, str]) -> tuple[Apply, ...]:
    """Keep these runs from starting rounds while benchmark.window is closed. `closed`: the window's annotation, {}
    while it is open. `measure` opens the window of a run again."""
    why = "benchmark.window is closed"
    changed = [run for run in runs if closed and not run.suspended and run.opens_at not in closed.values()]
    return tuple(Apply(annotated(owner, run, closed), why) for run in changed)


def supersede(owner: Owner, runs: Iterable[Run]) -> tuple[Apply, ...]:
    """End these runs without a verdict if they are under way."""
    why = "the question has changed"
    return tuple(Apply(annotated(owner, run, {SUPERSEDED: "true"}), why) for run in runs if run.under_way)


def abort_runs(owner: Owner, runs: Iterable[Run], request: str) -> tuple[Apply, ...]:
    """End these runs without a verdict, at a person's request, if they are under way."""
    return tuple(Apply(annotated(owner, run, {ABORTED: request}), request) for run in runs if run.under_way)


def annotated(owner: Owner, run: Run, annotations: Mapping[str, str]) -> Manifest:
    """The run with these annotations and those it was created with; other annotations of ours are removed. The spec is
    included, because an apply without it would remove it."""
    found = objects.annotations(run.manifest)
    made = {name: found[name] for name in (ATTEMPT, TRIGGER, TOKEN) if name in found}
    return benchmark_run(owner, run.pool, run.name, run.manifest["spec"], {**made, **annotations})


def window_opens_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens next; None while it is open, or without a window."""
    if spec.window is None or spec.window.closes(now):
        return None
    return spec.window.opens(now)


def window_changes_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens or closes next; None without a window."""
    return None if spec.window is None else spec.window.closes(now) or spec.window.opens(now)


def closed_window(spec: DeploymentSpec, now: datetime) -> dict[str, str]:
    """The benchmark.window annotation of a run: {} while the window is open. Runs read no clock: their deployment
    annotates them with the next opening time."""
    opens = window_opens_at(spec, now)
    return {OUTSIDE_WINDOW: timestamp(opens)} if opens else {}
