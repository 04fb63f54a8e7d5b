"""From what was gathered to what the steps of a run read."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from paceline.api import run_status
from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core import BASELINE, Purpose, RunSpec, Verdict
from paceline.core.names import RUN_LABEL
from paceline.evidence import ENVIRONMENT, Failure, RoundPlan
from paceline.evidence.round_status import answers, measurements
from paceline.gate import decide
from paceline.plan.objects import Object, finished, superseded
from paceline.plan.pods import container, not_started
from paceline.render import Owner, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round's Job and its pod."""

    job: Object
    pod: Object | None
    neighbours: tuple[str, ...] = ()
    """Other pods that had accelerators on its node; known once it has ended."""

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def ended(self) -> bool:
        return finished(self.job)

    @property
    def suspended(self) -> bool:
        """By a queue, or by a person: we never do."""
        return bool(self.job.get("spec", {}).get("suspend"))

    @property
    def node(self) -> str:
        return str(((self.pod or {}).get("spec") or {}).get("nodeName", ""))

    @property
    def waits_to_start(self) -> bool:
        """It holds accelerators, and none of its containers has ever run."""
        return not self.ended and self.pod is not None and not_started(self.pod)

    @property
    def plan(self) -> RoundPlan:
        """What this very Job was asked, whatever the operator would ask by now; raises ValueError if that cannot be
        read."""
        for one in self.job["spec"]["template"]["spec"]["containers"]:
            for variable in one.get("env", ()):
                if variable["name"] == ENVIRONMENT:
                    return RoundPlan.from_json(variable["value"])
        raise ValueError(f"Job {self.name} has no {ENVIRONMENT}")

    @property
    def unreadable(self) -> str:
        """Why its plan cannot be read: the Job of another release."""
        try:
            self.plan  # noqa: B018 (asked for what it raises)
        except ValueError as error:
            return str(error)
        return ""

    def image(self, name: str) -> str:
        """What a container of it ran from, by its digest; "" where the kubelet does not say."""
        return str(container(self.pod or {}, name).get("imageID", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A round that is over without a result."""

    failure: Failure
    line: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A BenchmarkRun, its Jobs, and where else is measured."""

    manifest: Object
    spec: RunSpec | None
    invalid: str
    rounds: tuple[Round, ...]
    namespaces: tuple[str, ...]
    """Those that have runs, whosever."""
    suspended: bool
    settings: Settings
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Of what waits without saying why, by uid: the last that Events said of it."""
    source: Object | None = None
    """The BenchmarkRun that spec.roundsOf names, if it is there; only looked for while status has no rounds."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What the API server refused of what the last pass wrote: by kind and name, in its words."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @cached_property
    def status(self) -> BenchmarkRunStatus:
        return from_status(BenchmarkRunStatus, self.manifest.get("status"))

    @property
    def finished(self) -> bool:
        return finished(self.manifest)

    @property
    def superseded(self) -> bool:
        return superseded(self.manifest)

    @property
    def owner(self) -> Owner:
        return Owner(
            kind="BenchmarkRun",
            name=self.name,
            namespace=str(self.manifest["metadata"]["namespace"]),
            uid=self.manifest["metadata"]["uid"],
            deployment=next(
                (
                    reference["uid"]
                    for reference in self.manifest["metadata"].get("ownerReferences") or ()
                    if reference["kind"] == "SpeculativeDeployment" and reference.get("controller")
                ),
                "",
            ),
        )

    @property
    def labels(self) -> Mapping[str, str]:
        return {RUN_LABEL: self.name}

    def told_of(self, round: Round) -> str:
        """What Events say of its pod."""
        return self.warnings.get((round.pod or {}).get("metadata", {}).get("uid", ""), "")

    @property
    def active(self) -> Round | None:
        return next((round for round in self.rounds if not round.ended), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A replicate that was no evidence."""

    reason: Failure
    why: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A run's rounds as recorded so far, this pass included, and what they come to."""

    spec: RunSpec
    records: tuple[run_status.Round, ...]

    @property
    def sweep(self) -> bool:
        return self.spec.purpose is Purpose.SWEEP

    @property
    def results(self) -> tuple[run_status.Round, ...]:
        """Rounds that gave a result."""
        return tuple(record for record in self.records if not record.error)

    @property
    def since_result(self) -> tuple[run_status.Round, ...]:
        """The tries in a row, up to now, that gave none, the latest first."""
        return tuple(itertools.takewhile(lambda record: bool(record.error), reversed(self.records)))

    @cached_property
    def verdict(self) -> Verdict:
        return decide(
            self.spec.gate,
            [arm.name for arm in self.spec.arms],
            {workload.name: workload.weight for workload in self.spec.workloads},
            measurements(self.records),
            answers(self.records),
            [workload.name for workload in self.spec.workloads if workload.rate],
        )

    def failures(self, arm: str) -> tuple[Failed, ...]:
        """Of this arm's latest replicates that were no evidence, the latest first: one for each of the rounds in a row,
        of those with a result and with this arm in them, in which a point of it was invalid. In a sweep, whose
        concurrencies each stand alone, in which all were. A candidate's points cannot be valid next to a baseline that
        failed, so such a round says nothing of it."""
        there = [record for record in reversed(self.results) if any(one.arm == arm for one in record.points)]
        if arm != BASELINE:
            there = [record for record in there if not _failed(record, BASELINE, every=self.sweep)]
        mine = (_failed(record, arm, every=self.sweep) for record in there)
        return tuple(failed for failed in itertools.takewhile(bool, mine) if failed)


def _failed(record: run_status.Round, arm: str, *, every: bool) -> Failed | None:
    points = [point for point in record.points if point.arm == arm]
    whys = [point.why for point in points if not point.valid]
    if every and len(whys) < len(points):
        return None
    reasons = [one.reason for one in record.replicates if one.arm == arm and one.reason]
    return Failed(reason=failure(reasons[0] if reasons else ""), why=whys[0]) if whys else None


def failure(reason: str) -> Failure:
    """As it stands in status."""
    return Failure.__members__.get(reason, Failure.NotMeasured)
