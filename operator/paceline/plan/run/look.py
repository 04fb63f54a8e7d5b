"""From what was gathered to what the steps of a run read."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from paceline.core import RunSpec, Verdict
from paceline.core.names import RUN_LABEL, SUPERSEDED
from paceline.evidence import ENVIRONMENT, RoundPlan, measurements
from paceline.gate import decide
from paceline.plan.pods import PULL_REASONS, container
from paceline.plan.terms import Found, condition
from paceline.render import Owner, Settings

DISRUPTED = "disrupted: "
"""How the error of a round begins that the cluster took away: nothing is wrong with the question or its servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round's Job and its pod."""

    job: Found
    pod: Found | None
    neighbours: tuple[str, ...] = ()
    """Other pods that had accelerators on its node; known once it has ended."""

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def ended(self) -> bool:
        return bool(condition(self.job, "Complete") or condition(self.job, "Failed"))

    @property
    def node(self) -> str:
        return str(((self.pod or {}).get("spec") or {}).get("nodeName", ""))

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

    @property
    def image(self) -> str:
        """The server's, by its digest; "" where the kubelet does not say."""
        return str(container(self.pod or {}, "server").get("imageID", ""))

    @property
    def hopeless(self) -> str:
        """Why it can give no result and would go on holding its GPUs all the same."""
        if self.ended:
            return ""
        return self.unreadable or _never_starts(self.pod or {})


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A BenchmarkRun, its Jobs, and the nodes that other runs measure on."""

    manifest: Found
    spec: RunSpec | None
    invalid: str
    rounds: tuple[Round, ...]
    taken: tuple[str, ...]
    """Nodes of other unfinished runs."""
    suspended: bool
    settings: Settings

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @property
    def status(self) -> Mapping[str, Any]:
        return self.manifest.get("status") or {}

    @property
    def finished(self) -> bool:
        return bool(condition(self.manifest, "Complete") or condition(self.manifest, "Failed"))

    @property
    def superseded(self) -> bool:
        return (self.manifest["metadata"].get("annotations") or {}).get(SUPERSEDED) == "true"

    @property
    def owner(self) -> Owner:
        return Owner(
            kind="BenchmarkRun",
            name=self.name,
            namespace=str(self.manifest["metadata"]["namespace"]),
            uid=self.manifest["metadata"]["uid"],
        )

    @property
    def labels(self) -> Mapping[str, str]:
        return {RUN_LABEL: self.name}

    @property
    def active(self) -> Round | None:
        return next((round for round in self.rounds if not round.ended), None)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A run's rounds as recorded so far, this pass included, and what they come to."""

    spec: RunSpec
    records: tuple[Mapping[str, Any], ...]

    @property
    def results(self) -> tuple[Mapping[str, Any], ...]:
        """Rounds that gave a result."""
        return tuple(record for record in self.records if not record.get("error"))

    @property
    def since_result(self) -> tuple[str, ...]:
        """The errors of the tries in a row, up to now, that gave none."""
        errors = (str(record.get("error", "")) for record in reversed(self.records))
        return tuple(itertools.takewhile(bool, errors))

    @property
    def disrupted(self) -> int:
        """How many of these the cluster took away."""
        return sum(error.startswith(DISRUPTED) for error in self.since_result)

    @property
    def fruitless(self) -> int:
        """How many of these failed by themselves."""
        return len(self.since_result) - self.disrupted

    @cached_property
    def verdict(self) -> Verdict:
        return decide(
            self.spec.gate,
            [arm.name for arm in self.spec.arms],
            {workload.name: workload.weight for workload in self.spec.workloads},
            measurements(self.records),
        )

    def failures(self, arm: str) -> tuple[str, ...]:
        """Why this arm's latest replicates were no evidence, the latest first: one reason for each of the rounds in a
        row, of those with a result and with this arm in them, in which a point of it was invalid."""
        points = ([point for point in record["points"] if point["arm"] == arm] for record in reversed(self.results))
        reasons = ([point.get("why", "") for point in mine if not point["valid"]] for mine in points if mine)
        return tuple(why[0] for why in itertools.takewhile(bool, reasons))


def _never_starts(pod: Found) -> str:
    """One container has ended and the other cannot even be started: the pod stays Pending for ever."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    if not any("terminated" in status.get("state", {}) for status in statuses):
        return ""
    waiting = {status["name"]: status.get("state", {}).get("waiting") or {} for status in statuses}
    return next(
        (
            f"the {name} never started: {found['reason']}: {found.get('message', '')}"
            for name, found in waiting.items()
            if found.get("reason") in PULL_REASONS
        ),
        "",
    )
