"""A deployment as shown to a person: status, requests, and the runs of its pools."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from paceline.api.status import Condition, PoolStatus
from paceline.api.status import SpeculativeDeploymentStatus as Status
from paceline.cli.live.progress import Progress, progress
from paceline.core import MAIN
from paceline.core.manifest import Object
from paceline.core.record import from_status
from paceline.engines.images import engine_and_version


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPool:
    """One pool. `asked` is None if an autoscaler decides."""

    name: str
    asked: int | None
    status: PoolStatus
    progress: Progress | None
    """Progress of the current run, or None."""
    emulated: frozenset[str]
    """Names of runs that used no real model."""
    stored: Object
    """The pool's status entry as the API server stores it; empty if there is none."""

    def condition(self, kind: str) -> Condition | None:
        return _condition(self.status.conditions, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDeployment:
    namespace: str
    name: str
    uid: str
    generation: int
    engine: str
    version: str
    suspended: bool
    manual: bool
    """Whether promotion.mode is Manual."""
    status: Status
    pools: tuple[ObservedPool, ...]
    stored: Object
    """The status as the API server stores it."""
    manifest: Object
    """The whole object."""

    @property
    def seen(self) -> bool:
        """Whether the operator's status is about the current spec."""
        return self.status.observed_generation == self.generation

    @property
    def judged(self) -> bool:
        """Whether the verdicts in status are about the current spec. While a step of the deployment blocks (an invalid
        spec, models being downloaded), status keeps earlier verdicts and has no `Decided`."""
        decided = self.condition("Decided")
        return self.seen and decided is not None and decided.observed_generation in (None, self.generation)

    def engine_of(self, arm: str) -> tuple[str, str]:
        """Engine and version of a candidate's servers, which may have their own."""
        candidates = (self.manifest.get("spec") or {}).get("candidates") or ()
        own = next((one.get("engine") or {} for one in candidates if one.get("name") == arm), {})
        engine, version = engine_and_version(own.get("type"), own.get("version"), own.get("image", ""))
        return engine or self.engine, version or self.version

    def chosen(self, pool: str | None) -> tuple[ObservedPool, ...]:
        """The pool with that name, or all. Raises ValueError with the existing names."""
        found = tuple(one for one in self.pools if pool in (None, one.name))
        if not found:
            raise ValueError(f"--pool: {self.name} has no pool {pool}; it has {', '.join(p.name for p in self.pools)}")
        return found

    def condition(self, kind: str) -> Condition | None:
        return _condition(self.status.conditions, kind)


def _condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def emulated_runs(entry: PoolStatus) -> set[str]:
    """Names of runs that the pool's status entry marks as emulated; they may have been deleted."""
    named = (one.evidence for one in (entry.serving, entry.target, entry.verdict, *entry.history) if one)
    return {evidence.run for evidence in named if evidence.emulated}


def _and_a_loan(found: Progress | None, entry: PoolStatus) -> Progress | None:
    """Adds to a waiting run what its pool does about it (lend it a server): only the pool's status says that."""
    step = entry.progress
    if found is None or not found.waits or step is None or step.step != "Measuring":
        return found
    return replace(found, waits=step.message.removeprefix(f"{found.run} ").rstrip(".") or found.waits)


def observe_deployment(
    manifest: Object, runs: Sequence[Object], started: Mapping[str, datetime], now: datetime
) -> ObservedDeployment:
    """`runs`: the runs of its pools, in any order. `started`: Job of the current round → start of its pod."""
    spec, metadata = manifest.get("spec") or {}, manifest["metadata"]
    status = from_status(Status, manifest.get("status"))
    entries = {entry.name: entry for entry in status.pools}
    emulated = {run["metadata"]["name"] for run in runs if (run.get("status") or {}).get("emulated")}
    stored = {entry.get("name"): entry for entry in (manifest.get("status") or {}).get("pools") or ()}
    by_name = {run["metadata"]["name"]: run for run in runs}
    pools = []
    for asked in (pool for pool in spec.get("pools") or [{"name": MAIN}] if isinstance(pool, Mapping)):
        name = str(asked.get("name", ""))
        entry = entries.pop(name, PoolStatus(name=name))
        run = by_name.get(entry.benchmark_run)
        pools.append(
            ObservedPool(
                name=name,
                asked=asked.get("replicas"),
                status=entry,
                progress=_and_a_loan(progress(run, started, now), entry) if run else None,
                emulated=frozenset(emulated | emulated_runs(entry)),
                stored=stored.get(name, {}),
            )
        )
    written = spec.get("engine") or {}
    engine, version = engine_and_version(written.get("type"), written.get("version"), written.get("image", ""))
    return ObservedDeployment(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 1),
        engine=engine,
        version=version,
        suspended=spec.get("suspend") is True,
        manual=(spec.get("promotion") or {}).get("mode") == "Manual",
        status=status,
        pools=tuple(pools),
        stored=manifest.get("status") or {},
        manifest=manifest,
    )
