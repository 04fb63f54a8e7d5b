"""A BenchmarkRun as its pool sees it: question, progress and verdict; and the actions that end or suspend it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from paceline.api import Reason
from paceline.api.run_status import BenchmarkRunStatus, Result, RunProgress, RunVerdict
from paceline.core import DeploymentSpec, Purpose, purpose_of
from paceline.core.manifest import Manifest, Object
from paceline.core.names import ABORTED, ATTEMPT, OUTSIDE_WINDOW, SUPERSEDED, SUSPENDED, TOKEN, TRIGGER
from paceline.core.record import kept_status
from paceline.evidence import fingerprint, narrowed, question
from paceline.plan import objects
from paceline.plan.pods import Trouble
from paceline.plan.step import Apply, parse_time, timestamp
from paceline.render import Owner, benchmark_run

_DECIDING = ("Promote", "Reject")
"""Outcomes that decide every candidate, or promote one."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a pool reads of one of its BenchmarkRuns."""

    manifest: Object
    stale: str = ""
    """Why it does not decide the present question, although it asks the same, in a sentence; "" if it may."""
    aged: bool = False
    """Its oldest round is older than maxEvidenceAge; a run that the pool relies on is not stale for that."""

    @cached_property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @cached_property
    def status(self) -> BenchmarkRunStatus:
        return kept_status(BenchmarkRunStatus, self.manifest.get("status"))

    @cached_property
    def verdict(self) -> RunVerdict:
        """Empty while there is none."""
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
        """What it was started for, as `core.Trigger`."""
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
        """Since when some node has too few accelerators for its round, and no node has room; None if that is not so."""
        progress = self.status.progress or RunProgress()
        waits = self.waits and progress.waits_for_accelerators and progress.unplaced_since
        return parse_time(progress.unplaced_since) if waits else None

    def _has(self, reason: Reason) -> bool:
        return any(condition.reason == reason.text for condition in self.status.conditions)

    @cached_property
    def refused(self) -> Trouble | None:
        """The trouble if the cluster refuses the pod of its round."""
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
        """Whether it waits for benchmark.window, and no round is under way."""
        return bool(self.opens_at) and self._has(Reason.RunOutsideWindow)

    @cached_property
    def superseded(self) -> bool:
        return objects.superseded(self.manifest)

    @cached_property
    def outcome(self) -> str | None:
        """The verdict's; None while there is none, and for a run that was superseded."""
        return self.verdict.outcome or None if self.finished else None

    @cached_property
    def searches(self) -> bool:
        return purpose_of(self.spec) is Purpose.SEARCH

    @cached_property
    def found(self) -> str:
        """The candidate that a search has found; "" if it has found none, and for a run that does not search."""
        return (self.winner or "") if self.searches and self.finished and not self.outcome else ""

    @cached_property
    def decides(self) -> bool:
        """For or against its candidates."""
        return self.outcome in _DECIDING

    @cached_property
    def imported(self) -> bool:
        """Whether it was measured without a cluster, and belongs to whoever has applied it."""
        return objects.brings_rounds(self.manifest)

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

    @cached_property
    def image(self) -> str:
        """The image that its servers ran from, as the kubelet reported it; "" if it did not."""
        return self.status.image_digests.get("server", "")

    def answers(self, wanted: Mapping[str, Any]) -> bool:
        """Whether its verdict holds for the question of `wanted`, although it compared more candidates by the same
        rule: its winner is one of the wanted candidates, or all were rejected. Its bounds are wider than theirs."""
        names = {arm["name"] for arm in wanted["arms"]}
        holds = self.winner in names if self.outcome == "Promote" else self.outcome == "Reject"
        return holds and question(narrowed(self.spec, names)) == question(wanted)

    def ratio(self, arm: str | None) -> Result | None:
        """The mean speed of an arm over all workloads."""
        results = self.status.results or ()
        return next((result for result in results if result.arm == arm and result.workload == "mean"), None)


def suspend(owner: Owner, runs: Iterable[Run]) -> tuple[Apply, ...]:
    """Let these runs rest as long as they are under way: they keep their rounds."""
    why = "spec.suspend is set"
    return tuple(Apply(annotated(owner, run, {SUSPENDED: "true"}), why) for run in runs if run.under_way)


def close(owner: Owner, runs: Iterable[Run], closed: Mapping[str, str]) -> tuple[Apply, ...]:
    """Let these runs start no round while benchmark.window is `closed`: its annotation, {} while it is open. It opens
    again where a run goes on (`measure`)."""
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
    """The run with these annotations of ours, and those with which it was made, and no others. Its spec goes along: an
    apply without it removes it."""
    found = objects.annotations(run.manifest)
    made = {name: found[name] for name in (ATTEMPT, TRIGGER, TOKEN) if name in found}
    return benchmark_run(owner, run.pool, run.name, run.manifest["spec"], {**made, **annotations})


def window_opens_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens next; None while it is open, or if there is none."""
    if spec.window is None or spec.window.closes(now):
        return None
    return spec.window.opens(now)


def window_changes_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens or closes next; None if there is none."""
    return None if spec.window is None else spec.window.closes(now) or spec.window.opens(now)


def closed_window(spec: DeploymentSpec, now: datetime) -> dict[str, str]:
    """What a run that goes on says of benchmark.window: {} while it is open. A run reads no clock for that: its
    deployment annotates it with the time of the next opening."""
    opens = window_opens_at(spec, now)
    return {OUTSIDE_WINDOW: timestamp(opens)} if opens else {}
