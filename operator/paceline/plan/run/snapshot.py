"""A BenchmarkRun and its Jobs as gathered, with the properties that the steps read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from paceline.api.round import Round
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core import RunSpec
from paceline.core.manifest import Object
from paceline.core.names import RUN_LABEL
from paceline.core.record import kept_status
from paceline.evidence import ENVIRONMENT, Failure, RoundPlan
from paceline.plan import pods
from paceline.plan.objects import aborted, finished, opens_at, superseded
from paceline.plan.run.rounds import counting_rounds, fitting, of_its_question
from paceline.render import Owner, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundJob:
    """A round's Job and its pod."""

    job: Object
    pod: Object | None
    neighbours: tuple[str, ...] = ()
    """Other pods that had accelerators on its node; set once it has ended."""
    log: str = ""
    """Its client's, once that has ended and the round is not recorded."""
    unread: str = ""
    """Why the log cannot be read; "" if it can."""
    given_up: bool = False
    """It could not be read for so long that it is not waited for."""

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def ended(self) -> bool:
        """While its log may still be read it has not: its result would be lost."""
        return finished(self.job) and (not self.unread or self.given_up)

    @property
    def suspended(self) -> bool:
        """By a queue or a person; Paceline never suspends a round's Job."""
        return bool(self.job.get("spec", {}).get("suspend"))

    @property
    def node(self) -> str:
        return str(((self.pod or {}).get("spec") or {}).get("nodeName", ""))

    @property
    def waits_to_start(self) -> bool:
        """Its pod exists, and none of its containers has ever run."""
        return not self.ended and self.pod is not None and pods.not_started(self.pod)

    @property
    def plan(self) -> RoundPlan:
        """The plan that this Job was made with, which may differ from what the operator would plan today. Raises
        ValueError if it cannot be read."""
        return _plan_of(self.job)

    @property
    def unreadable(self) -> str:
        """Why its plan cannot be read: another release made the Job; "" if it can."""
        try:
            _plan_of(self.job)
        except ValueError as error:
            return str(error)
        return ""

    def image(self, name: str) -> str:
        """Image that its container of this name ran from, by digest; "" if the kubelet does not report it."""
        return str(pods.container(self.pod or {}, name).get("imageID", ""))


def _plan_of(job: Object) -> RoundPlan:
    for container in job["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env", ()):
            if variable["name"] == ENVIRONMENT:
                return RoundPlan.from_json(variable["value"])
    raise ValueError(f"Job {job['metadata']['name']} has no {ENVIRONMENT}")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why a round is over without a result: the kind, and the last useful line about it."""

    failure: Failure
    line: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A BenchmarkRun and all that its planner reads of the cluster."""

    manifest: Object
    spec: RunSpec | None
    invalid: str
    jobs: tuple[RoundJob, ...]
    namespaces: tuple[str, ...]
    """Namespaces that have BenchmarkRuns."""
    suspended: bool
    settings: Settings
    warnings: Mapping[str, str] = field(default_factory=dict)
    """uid → message of the latest Event, for objects whose status does not explain why they wait."""
    objects: tuple[Object, ...] = ()
    """BenchmarkRounds with the run's label."""
    unread: str = ""
    """Why they cannot be read."""
    source: Object | None = None
    """The BenchmarkRun that gate.roundsOf names, if it exists; only read while this run has no round of its own."""
    source_objects: tuple[Object, ...] = ()
    """Its BenchmarkRounds."""
    left: tuple[Object, ...] = ()
    """Jobs of this run's name that nobody owns: a run that was deleted with --cascade=orphan has left them."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(kind, name) → the API server's message, for each object of the last pass that it refused."""
    absent: frozenset[str] = frozenset()
    """Kinds that the cluster lacks, or does not show us."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @cached_property
    def status(self) -> BenchmarkRunStatus:
        return kept_status(BenchmarkRunStatus, self.manifest.get("status"))

    @cached_property
    def mine(self) -> tuple[Object, ...]:
        """The BenchmarkRounds of what it asks."""
        return of_its_question(self.manifest, self.objects) if self.spec else ()

    @cached_property
    def brought(self) -> tuple[Round, ...]:
        """The rounds that are there, in order, whatever arms they have."""
        return counting_rounds(self.manifest, self.mine)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Those that are recorded and count, in order."""
        return fitting(self.spec, self.brought) if self.spec else ()

    @property
    def finished(self) -> bool:
        return finished(self.manifest)

    @property
    def aborted(self) -> str:
        """The request by which a person has ended it; "" if none has."""
        return aborted(self.manifest)

    @property
    def opens_at(self) -> str:
        return opens_at(self.manifest)

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

    def warning_of(self, round: RoundJob) -> str:
        """Message of the latest Event about the round's pod; "" if there is none."""
        return self.warnings.get((round.pod or {}).get("metadata", {}).get("uid", ""), "")

    @property
    def active(self) -> RoundJob | None:
        return next((job for job in self.jobs if not job.ended), None)
