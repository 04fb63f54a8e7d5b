"""A BenchmarkRun as its pool sees it: what it was asked, how far it is, and what it has found."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from paceline.api import Reason, run_status
from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus, Result, RunProgress, RunVerdict
from paceline.evidence import fingerprint, narrowed, question
from paceline.plan import objects
from paceline.plan.objects import Object
from paceline.plan.pods import Trouble
from paceline.plan.step import parse_time


@dataclass(frozen=True, kw_only=True)
class Run:
    """A BenchmarkRun of the pool, as far as the pool cares."""

    found: Object
    stale: bool = False
    """Too old to answer a question that is asked anew."""
    aged: bool = False
    """Its oldest round is; one that the pool has gone by so far is not stale for that."""

    @property
    def name(self) -> str:
        return str(self.found["metadata"]["name"])

    @cached_property
    def status(self) -> BenchmarkRunStatus:
        return from_status(BenchmarkRunStatus, self.found.get("status"))

    @property
    def verdict(self) -> RunVerdict:
        """Without any field while there is none."""
        return self.status.verdict or RunVerdict()

    @property
    def pool(self) -> str:
        return str(self.found["spec"]["pool"])

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.found["spec"]
        return spec

    @cached_property
    def question(self) -> str:
        return question(self.spec)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.spec)

    @property
    def attempt(self) -> int:
        return int(self.found["spec"].get("attempt", 1))

    @property
    def finished(self) -> bool:
        return objects.finished(self.found)

    @property
    def waits(self) -> bool:
        """For a node with room for its round."""
        return any(said.reason == Reason.RunWaiting.text for said in self.status.conditions)

    @property
    def refused(self) -> Trouble | None:
        """Nobody may make the pod of its round, and since when."""
        progress = self.status.progress or RunProgress()
        if not any(said.reason == Reason.RunRefused.text for said in self.status.conditions):
            return None
        since = progress.unplaced_since
        what = f"{self.name} {progress.message}"
        return Trouble(what=what, says=Reason.PodRefused, since=parse_time(since) if since else None)

    @property
    def suspended(self) -> bool:
        return objects.suspended(self.found)

    @property
    def superseded(self) -> bool:
        return objects.superseded(self.found)

    @property
    def outcome(self) -> str | None:
        """Of the verdict; None while there is none, and for a run that was superseded."""
        return self.verdict.outcome or None if self.finished else None

    @property
    def winner(self) -> str | None:
        return self.verdict.winner or None

    @property
    def finished_at(self) -> str:
        return self.status.finished_at

    @property
    def results(self) -> tuple[run_status.Round, ...]:
        """Rounds that gave a result."""
        return tuple(record for record in self.status.rounds or () if not record.error)

    def answers(self, wanted: Mapping[str, Any]) -> bool:
        """Asked about more candidates by the same rule, it has found what holds for these alone: its winner is one of
        them, or all were rejected. Its bounds are wider than theirs would be."""
        names = {arm["name"] for arm in wanted["arms"]}
        found = self.winner in names if self.outcome == "Promote" else self.outcome == "Reject"
        return found and question(narrowed(self.spec, names)) == question(wanted)

    def ratio(self, arm: str | None) -> Result | None:
        """An arm's mean over workloads."""
        return next((one for one in self.status.results or () if one.arm == arm and one.workload == "mean"), None)
