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
from paceline.engines.pod_template import CLIENT, arm_container
from paceline.evidence import ENVIRONMENT, Failure, RoundPlan
from paceline.plan import trouble
from paceline.plan.objects import aborted, finished, opens_at, superseded
from paceline.plan.run.rounds import counting_rounds, fitting, of_its_question
from paceline.render import Owner, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundJob:
    """A round's Job and its pod."""

    job: Object
    pod: Object | None
    neighbours: tuple[str, ...] = ()
    """Other pods with accelerators on its node; set once the round has ended."""
    log: str = ""
    """Its client's log; set once the client has ended and the round is not recorded."""
    unread: str = ""
    """Why the log cannot be read; "" if it can."""
    given_up: bool = False
    """The log has been unreadable for so long that it is not waited for."""

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def ended(self) -> bool:
        """Whether it has ended; not while its log may become readable, because its result would be lost."""
        return finished(self.job) and (not self.unread or self.given_up)

    @property
    def suspended(self) -> bool:
        """Suspended by a queue or a person; Paceline never suspends a round's Job."""
        return bool(self.job.get("spec", {}).get("suspend"))

    @property
    def node(self) -> str:
        return str(((self.pod or {}).get("spec") or {}).get("nodeName", ""))

    @property
    def waits_to_start(self) -> bool:
        """Its pod has a node, but no container except the client's has ever run."""
        return not self.ended and bool(self.node) and not trouble.begun(self.pod or {})

    @property
    def plan(self) -> RoundPlan:
        """The plan in this Job, which may differ from the operator's present plan. Raises ValueError if it cannot be
        read."""
        return _plan_of(self.job)

    @property
    def unreadable(self) -> str:
        """Why its plan cannot be read, because another release created the Job; "" if it can."""
        try:
            _plan_of(self.job)
        except ValueError as error:
            return str(error)
        return ""

    @property
    def server_image(self) -> str:
        """Digest of the image that arms share; "" if the kubelet does not report it."""
        images = (self.image(arm_container(arm.name)) for arm in self.plan.arms if arm.held is None)
        return next((image for image in images if image), "")

    @property
    def client_image(self) -> str:
        return self.image(CLIENT)

    def image(self, container: str) -> str:
        return str(trouble.container(self.pod or {}, container).get("imageID", ""))


def _plan_of(job: Object) -> RoundPlan:
    for container in job["spec"]["template"]["spec"].get("initContainers", ()):
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
    """A BenchmarkRun with everything that its planner reads from the cluster."""

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
    """Why the BenchmarkRounds cannot be read."""
    source: Object | None = None
    """The BenchmarkRun in gate.roundsOf, if it exists; only read while this run has no own round."""
    source_objects: tuple[Object, ...] = ()
    """The source's BenchmarkRounds."""
    left: tuple[Object, ...] = ()
    """Jobs with this run's label but no owner: left by a run deleted with --cascade=orphan."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(kind, name) → the API server's message, for each object that it refused in the last pass."""
    absent: frozenset[str] = frozenset()
    """Kinds that the cluster lacks or hides from us."""

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
        """The BenchmarkRounds that measured its question."""
        return of_its_question(self.manifest, self.objects) if self.spec else ()

    @cached_property
    def brought(self) -> tuple[Round, ...]:
        """All existing rounds, in order, with any arms."""
        return counting_rounds(self.manifest, self.mine)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Recorded rounds that count, in order."""
        return fitting(self.spec, self.brought) if self.spec else ()

    @property
    def finished(self) -> bool:
        return finished(self.manifest)

    @property
    def aborted(self) -> str:
        """The request that ended the run; "" if there was none."""
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
