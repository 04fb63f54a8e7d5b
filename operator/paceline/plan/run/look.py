"""From what was gathered to what the steps of a run read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from paceline.core import BASELINE, RunSpec, Verdict
from paceline.core.names import RUN_LABEL
from paceline.evidence import ENVIRONMENT, RoundPlan, measurements
from paceline.gate import decide
from paceline.plan.terms import Found, condition
from paceline.render import Owner, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round's Job and its pod."""

    job: Found
    pod: Found | None

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
        """What this very Job was asked, whatever the operator would ask by now."""
        for container in self.job["spec"]["template"]["spec"]["containers"]:
            for variable in container.get("env", ()):
                if variable["name"] == ENVIRONMENT:
                    return RoundPlan.from_json(variable["value"])
        raise ValueError(f"Job {self.name} has no {ENVIRONMENT}")


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
        return (self.manifest["metadata"].get("annotations") or {}).get("paceline.dev/superseded") == "true"

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
    def fruitless(self) -> int:
        """Tries in a row, up to now, that gave none."""
        count = 0
        for record in reversed(self.records):
            if not record.get("error"):
                break
            count += 1
        return count

    @cached_property
    def verdict(self) -> Verdict:
        return decide(
            self.spec.gate,
            [arm.name for arm in self.spec.arms],
            {workload.name: workload.weight for workload in self.spec.workloads},
            measurements(self.records),
        )

    def failures(self, arm: str) -> list[str]:
        """Why this arm's replicates were no evidence: one reason for each round in which a point was invalid."""
        reasons = []
        for record in self.results:
            why = [point.get("why", "") for point in record["points"] if point["arm"] == arm and not point["valid"]]
            if why:
                reasons.append(why[0])
        return reasons

    @property
    def baseline_failures(self) -> list[str]:
        return self.failures(BASELINE)
