"""Runs the operator's planner in a loop and carries out a round's Job here."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paceline import api
from paceline.api.round import ROUND_KIND
from paceline.core import RunSpec
from paceline.core.manifest import Manifest
from paceline.core.spec import LONGEST_NOTE, LONGEST_SENTENCE
from paceline.evidence import RoundPlan
from paceline.evidence.result_log import PREFIX
from paceline.measure import pod, record
from paceline.measure.machine import Machine, otherwise, plan_here
from paceline.measure.pod import Pod
from paceline.measure.question import IN_MEMORY, LOCAL_SETTINGS, QuestionError
from paceline.plan import run as planner
from paceline.plan.objects import finished
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.run.steps.check import unpinned
from paceline.plan.step import Apply, Delete, Plan
from paceline.pods.round.__main__ import check_arms
from paceline.render.round_job import round_plan

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The run's current state, with the plan, start time and client output of the round under way."""

    run: Manifest
    plan: RoundPlan | None = None
    began: datetime | None = None
    said: tuple[str, ...] = ()


@dataclass(kw_only=True)
class LocalRun:
    """A run, the file with its state, and the pod of a round under way. Its processes inherit `lock`."""

    run: Manifest
    file: Path
    machine: Machine
    environ: Mapping[str, str]
    lock: int
    pod: Pod | None = None

    def __post_init__(self) -> None:
        self.spec: RunSpec = api.run(record.without_rounds(self.run))

    def check(self) -> None:
        """Find errors that would fail every round, such as unreadable prompts, before anything is started. Raises
        QuestionError, DatasetError, and OSError for a missing file."""
        for _, missing in unpinned(self.spec):
            raise QuestionError(missing)
        owner = self._snapshot(None).owner
        check_arms(plan_here(round_plan(owner, self.spec, self.spec.arms, 0, 0), self.machine))

    def until_the_end(self) -> Iterator[Moment]:
        """A moment every fifth of a second until the run ends. No process survives, however the loop is left."""
        due: datetime | None = None
        ask = True
        try:
            while not finished(self.run):
                now = datetime.now(UTC)
                was_over = self.pod is None or self.pod.ended is not None
                seen = self.pod.seen(now) if self.pod else None
                if ask or (due and now >= due) or (self.pod and not was_over and self.pod.ended):
                    plan = planner.plan(self._snapshot(seen), now)
                    ask = self._follow(plan, now)
                    due = plan.requeue_at
                yield self.moment()
                time.sleep(0 if ask or finished(self.run) else _POLL_SECONDS)
        finally:
            if self.pod is not None:
                self.pod.stop()

    def moment(self) -> Moment:
        if self.pod is None or self.pod.ended:
            return Moment(run=self.run)
        log = self.pod.log("client")
        said = log.read_text(errors="replace").splitlines() if log.is_file() else []
        return Moment(
            run=self.run,
            plan=RoundJob(job=self.pod.job, pod=None).plan,
            began=self.pod.began,
            said=tuple(line for line in said if not line.startswith(PREFIX)),
        )

    def _snapshot(self, seen: RoundJob | None) -> planner.Snapshot:
        asked = {**record.without_rounds(self.run), "metadata": {**IN_MEMORY, **self.run["metadata"]}}
        return planner.Snapshot(
            manifest=asked,
            spec=self.spec,
            invalid="",
            jobs=(seen,) if seen else (),
            objects=tuple(_owned(one) for one in record.as_documents(asked) if one["kind"] == ROUND_KIND),
            namespaces=(IN_MEMORY["namespace"],),
            suspended=False,
            settings=LOCAL_SETTINGS,
        )

    @property
    def _how(self) -> Manifest:
        differs = [text[:LONGEST_SENTENCE] for text in otherwise(self.machine, self.spec.server, self.spec.arms)]
        how = {"machine": self.machine.name, "note": self.machine.note[:LONGEST_NOTE]}
        return {**how, "differs": differs} if differs else how

    def _follow(self, plan: Plan, now: datetime) -> bool:
        """Write the status, then carry out actions, like the operator. True if the planner must run again at once."""
        if plan.status is not None:
            self.run = {**self.run, "status": dict(plan.status)}
            record.save(self.file, self.run, self.machine.mark)
        for action in plan.actions:
            match action:
                case Delete() if self.pod is not None:
                    self.pod.stop()
                    self.pod = None
                case Apply(manifest) if manifest["kind"] == ROUND_KIND:
                    self.run = record.with_round(self.run, manifest["spec"], self._how)
                    record.save(self.file, self.run, self.machine.mark)
                case Apply(manifest) if manifest["kind"] == "Job":
                    self.pod = pod.start(manifest, self.machine, self.environ, now, self.lock)
        return bool(plan.actions)


def _owned(round: Manifest) -> Manifest:
    return {**round, "metadata": {**round["metadata"], "ownerReferences": [{"uid": IN_MEMORY["uid"]}]}}
