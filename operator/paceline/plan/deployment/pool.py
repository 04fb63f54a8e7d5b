"""Input of a pool's steps: its pinned spec, its entry in status, its runs, servers and kept revisions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from paceline.api.status import PoolStatus, Serving, Target
from paceline.core import (
    BASELINE,
    INCUMBENT,
    Arm,
    DeploymentSpec,
    PoolSettings,
    RunSpec,
    Server,
    Trigger,
)
from paceline.core.manifest import Object
from paceline.core.names import TOKEN, child_name
from paceline.engines import fewest_drafts_first
from paceline.evidence import fingerprint, question, surroundings
from paceline.evidence.engine_differences import image_in
from paceline.evidence.fingerprint import incumbent
from paceline.plan.deployment.incumbent import NO_CHANGE, UNDONE, Gated, Incumbent, gated, inputs_of
from paceline.plan.deployment.models import ArtifactKey, artifacts_of, key_of
from paceline.plan.deployment.run_spec import ended_search, last_retried, make_run_spec, with_image, written
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.servers import Servers, left_to_it, servers_of
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import annotations, brings_rounds, differ, image_digest, owned_by
from paceline.plan.step import parse_time, timestamp
from paceline.render import group_name, revision_of
from paceline.render.group import GROUPS


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One pool at one moment."""

    snapshot: Snapshot
    deployment: DeploymentSpec
    """The spec with every model and dataset at its commit."""
    spec: PoolSettings
    server: Server
    remembered: PoolStatus
    """The pool's entry in status."""
    runs: tuple[Run, ...]
    servers: Servers | None
    kept: Mapping[str, Object]
    """Revision → its ControllerRevision."""
    wanted: Mapping[str, Any]
    """The spec of a run that would decide the present question. For a pool with a search, this is first the search, and
    then the gate about its result."""
    search: Run | None = None
    """The search that found the candidate in question, or that there is none."""
    gated: Gated = NO_CHANGE
    """Whether the spec asks for another server than what serves. `wanted` then has the incumbent as its last arm."""
    blocked: bool = False
    """The spec is refused, or its models are missing or do not fit: the pool serves on but measures nothing."""
    refused: bool = False
    """The spec is refused."""
    question: str
    """Hash of the open question: what is measured, and by which rule."""
    fingerprints: frozenset[str]
    """Hashes of what the present question measures, and of the search before it."""
    asked: str = ""
    """The request carried out in this pass, as VERB=VALUE; "" if there was none, or if it changed nothing."""

    @cached_property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def arms(self) -> Mapping[str, Arm]:
        return {arm.name: arm for arm in self.spec.arms}

    @cached_property
    def rendered(self) -> frozenset[str]:
        """Revisions of the spec's arms."""
        return frozenset(map(self.revision, self.spec.arms))

    @property
    def incumbent(self) -> Incumbent | None:
        """What serves until a change of the spec was shown not to be slower; None without such a change."""
        return self.gated.incumbent

    @property
    def served_as(self) -> str:
        """The arm in a run that the servers are; "" without servers."""
        return _as_measured(self.servers, self.incumbent)

    @cached_property
    def suspended(self) -> bool:
        return self.deployment.suspend

    @cached_property
    def frozen(self) -> bool:
        """The pool serves only revisions that were chosen before."""
        return self.suspended or self.blocked

    @cached_property
    def is_unknown(self) -> bool:
        """The pool is frozen, and status does not say what it serves: its servers stay unchanged."""
        if not self.frozen or self.remembered.target:
            return False
        return self.blocked or self.servers is not None

    def last_asked(self, fingerprint: str) -> str:
        """The fingerprint of the open question. While the pool is frozen, the spec asks nothing: then the choice's
        `fingerprint` counts."""
        return fingerprint if self.frozen and fingerprint else self.fingerprint

    @cached_property
    def has_verdict(self) -> bool:
        """Whether there is a verdict: on the present question or, while the pool is blocked, on the last one."""
        return self.decided is not None or (self.blocked and self.remembered.verdict is not None)

    @cached_property
    def run_spec(self) -> RunSpec:
        """`wanted` as a RunSpec. If a run has shown that the incumbent's tag means another image than the servers run,
        it is measured by digest."""
        run = self._by_tag
        image = self.servers.image if self.servers and self.served_as == INCUMBENT else ""
        moved = "@" in image and any(differ(one.image_of(INCUMBENT), image) for one in self.runs)
        return with_image(run, INCUMBENT, image) if moved else run

    @cached_property
    def in_question(self) -> tuple[str, ...]:
        """Names of the candidates in the present question."""
        return tuple(arm["name"] for arm in self.wanted["arms"] if arm["name"] not in (BASELINE, INCUMBENT))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of what the present question measures."""
        return fingerprint(self.wanted)

    @cached_property
    def attempts(self) -> tuple[Run, ...]:
        """Runs of the present question, latest attempt first; after them the imported ones, latest measurement
        first."""
        of_now = [run for run in self.runs if self.asks(run)]
        return tuple(sorted(of_now, key=lambda run: (not run.imported, run.attempt, run.measured_at), reverse=True))

    @cached_property
    def decided(self) -> Run | None:
        """The run whose verdict counts now: one of the present question, else the latest of a question about more
        candidates. A run that a person asked to repeat does not count, nor does any earlier attempt. An imported run
        takes the place of an Error."""
        ended = [run for run in self.runs if run.outcome and not run.stale]
        fresh = [run for run in ended if not self.given_up(run) and self._compares(run)]
        broader = sorted((run for run in fresh if run.answers(self.wanted)), key=lambda run: run.completion_time)
        of_now = [run for run in self.attempts if run in fresh]
        brought = [run for run in of_now if run.imported]
        if of_now and of_now[0].outcome == "Error" and brought:
            return brought[0]
        return next(iter((*of_now, *reversed(broader))), None)

    def asks(self, run: Run) -> bool:
        """Whether this run, or its answer, is about the present question: with the present incumbent, if there is
        one."""
        return run.question == self.question and self._compares(run)

    def _compares(self, run: Run) -> bool:
        """Whether the run compared the spec's arms with what serves, if that is not one of them. After a roll-out, or
        once a person has let a change through, a run counts without its incumbent, unless that decided it."""
        theirs, ours = incumbent(run.spec), incumbent(self.wanted)
        if ours is None or self.incumbent is None:
            return theirs is None or self.frozen or (run.finished and not run.lost_to_incumbent)
        return self.is_beside(run) or (self.incumbent.was.reason in UNDONE and run.name in self._undone)

    def is_beside(self, run: Run) -> bool:
        """Whether the run measured the present incumbent."""
        return _measured_beside(run, self._by_tag, self.servers)

    @cached_property
    def _by_tag(self) -> RunSpec:
        return make_run_spec(self.deployment, self.spec, self.server, self.search, self.incumbent)

    @cached_property
    def _undone(self) -> frozenset[str]:
        """The runs that had promoted what was undone last."""
        entry = self.remembered
        return frozenset((*(one.run for one in entry.holds), *(one.evidence.run for one in entry.history[:2])))

    def given_up(self, run: Run) -> bool:
        """Whether a person asked to repeat this run."""
        return run.question == self.question and run.attempt <= self.retried and not run.imported

    @cached_property
    def retried(self) -> int:
        """The last attempt at the present question that a person asked to repeat; 0 if none."""
        return last_retried(self.remembered, self.question)

    def revision(self, arm: Arm) -> str:
        return revision_of(self.server, arm)

    def inputs(self, revision: str) -> tuple[Server, Arm] | None:
        """What the revision was rendered from; None if that is not known."""
        return inputs_of(self.kept, self.runs, revision)


def pools(
    snapshot: Snapshot,
    pinned: DeploymentSpec,
    now: datetime,
    blocked: Collection[str] = (),
    refused: bool = False,
) -> tuple[Pool, ...]:
    """`pinned`: the spec at commits, unknown ones at a placeholder; `blocked`: names of pools."""
    return tuple(_pool(snapshot, pinned, spec, now, spec.name in blocked, refused) for spec in pinned.pools)


def lacks_models(spec: DeploymentSpec, missing: Collection[ArtifactKey]) -> frozenset[str]:
    """The pools that name one of these models or datasets."""
    return frozenset(
        pool.name
        for pool in spec.pools
        if any(key_of(one) in missing for one in artifacts_of(replace(spec, pools=(pool,))))
    )


def _pool(
    snapshot: Snapshot, pinned: DeploymentSpec, spec: PoolSettings, now: datetime, blocked: bool, refused: bool
) -> Pool:
    remembered = snapshot.remembered(spec.name)
    spec = left_to_it(snapshot, spec)
    server = replace(
        pinned.server,
        max_concurrency=max(workload.concurrency for workload in spec.workloads),
        # Download settings do not shape a server: another proxy must not change its revision.
        cache=replace(pinned.server.cache, env=(), security_context={}),
    )
    own = [Run(manifest=run) for run in snapshot.owned("BenchmarkRun", spec.name) if not brings_rounds(run)]
    spec = replace(spec, arms=fewest_drafts_first(server, spec.arms))
    servers = servers_of(snapshot, spec.name, now)
    imported = (Run(manifest=run) for run in snapshot.imported_of(spec.name))
    runs = [*own, *(run for run in imported if run.decides and run.is_trusted(snapshot.settings.signers))]
    rendered = {revision_of(server, arm): arm.name for arm in spec.arms}
    served = rendered.get(servers.revision) if servers else None
    in_use = runs_in_use(replace(remembered, serving=None))

    def relied_on(run: Run) -> bool:
        """If status was lost, a run whose winner is served still counts."""
        return run.name in in_use or (not remembered.target and (run.winner or BASELINE) == served)

    oldest = now - pinned.max_evidence_age
    kept = snapshot.revisions(spec.name)
    frozen = pinned.suspend or blocked
    if remembered.target is None and servers and servers.revision in kept:
        remembered = _found_again(remembered, servers, timestamp(now)) if not served else remembered
    as_asked = remembered.target is None or (not remembered.holds and remembered.target.revision in rendered)
    change = NO_CHANGE if frozen or as_asked else _gated(pinned, spec, server, remembered, kept, runs, servers)
    if moved := change.moved:
        if remembered.serving and remembered.serving.revision == moved.revision:
            moved = replace(moved, start_time=timestamp(now))  # what was on its way out has to be ready once more
        remembered = replace(remembered, target=moved)
    first = wanted = written(make_run_spec(pinned, spec, server, None, change.incumbent))
    search = ended_search(spec, runs, question(wanted), remembered, change.incumbent)
    if search:
        wanted = written(make_run_spec(pinned, spec, server, search, change.incumbent))
    arm = _as_measured(servers, change.incumbent)
    serving = servers if served or arm == INCUMBENT else None
    return Pool(
        snapshot=snapshot,
        deployment=pinned,
        spec=spec,
        server=server,
        remembered=remembered,
        runs=tuple(_run(run, oldest, relied_on(run), wanted, serving, arm) for run in runs),
        servers=servers,
        kept=kept,
        wanted=wanted,
        gated=change,
        search=search,
        question=question(wanted),
        fingerprints=frozenset(map(fingerprint, (first, wanted))),
        blocked=blocked,
        refused=refused,
    )


def remembering(pool: Pool, remembered: PoolStatus) -> Pool:
    """The pool with another entry. Its question stays; a run about it compares with what serves by this entry."""
    found = _gated(pool.deployment, pool.spec, pool.server, remembered, pool.kept, pool.runs, pool.servers)
    return replace(pool, remembered=remembered, gated=NO_CHANGE if pool.frozen else found)


def _gated(
    spec: DeploymentSpec,
    pool: PoolSettings,
    server: Server,
    remembered: PoolStatus,
    kept: Mapping[str, Object],
    runs: Sequence[Run],
    servers: Servers | None,
) -> Gated:
    """Also without an incumbent if that was shown to fail in a run, where the spec's baseline lived."""
    judged = bool(remembered.holds) and _judged(spec, pool, server, runs)
    found = gated(spec, pool, server, remembered, partial(inputs_of, kept, runs), judged)
    failed = [run for run in runs if run.incumbent_failed]
    if found.incumbent is None or not failed:
        return found
    asked = make_run_spec(spec, pool, server, None, found.incumbent)
    beside = (run for run in failed if run.question == question(written(asked)))
    run = next((run for run in beside if _measured_beside(run, asked, servers)), None)
    return Gated(at_once=f"what serves failed in {run.name}") if run else found


def _measured_beside(run: Run, asked: RunSpec, servers: Servers | None) -> bool:
    """Whether the run measured the incumbent of `asked`, by its tag or by the digest that its servers run."""
    theirs = incumbent(run.spec)
    if theirs is None or theirs == incumbent(written(asked)):
        return theirs is not None
    image = str(theirs.get("engine", {}).get("image", ""))
    if "@" not in image or differ(image, servers.image if servers else ""):
        return False
    return theirs == incumbent(written(with_image(asked, INCUMBENT, image)))


def _judged(spec: DeploymentSpec, pool: PoolSettings, server: Server, runs: Sequence[Run]) -> bool:
    """Whether a run compared the spec with what served: then that verdict decides, not what happens to servers."""
    asked = surroundings(written(make_run_spec(spec, replace(pool, search=None), server, None, None)))
    compared = (run for run in runs if run.beside_incumbent and surroundings(run.spec) == asked)
    return any(run.outcome not in (None, "Error") for run in compared)


SHOWN = 19
"""Characters of a digest shown in a sentence: `sha256:` and twelve digits."""


def _found_again(lost: PoolStatus, servers: Servers, now: str) -> PoolStatus:
    """The entry of a pool whose status was lost while its spec asks for other servers than those that serve."""
    serving = Serving(revision=servers.revision, arm=servers.arm, start_time=now)
    target = Target(revision=servers.revision, arm=servers.arm, start_time=now, reason="Updated")
    return replace(lost, serving=serving, target=target)


def _as_measured(servers: Servers | None, incumbent: Incumbent | None) -> str:
    """The arm in a run that the servers are."""
    if servers and incumbent and servers.revision == incumbent.revision:
        return INCUMBENT
    return servers.arm if servers else ""


def _run(
    run: Run, oldest: datetime, relied_on: bool, wanted: Mapping[str, Any], serving: Servers | None, arm: str
) -> Run:
    """A run that the pool already relies on does not become stale by age. `serving`: servers of the present spec or of
    the incumbent; `arm`: theirs in a run."""
    aged = _is_aged(run, oldest)
    if run.outcome is None:
        return replace(run, aged=aged)
    too_old = f"{run.name} is older than maxEvidenceAge" if aged and not relied_on else ""
    return replace(run, aged=aged, stale=too_old or _moved_image(run, wanted, serving, arm))


def runs_in_use(remembered: PoolStatus) -> set[str]:
    """Names of the runs that a pool's entry in status refers to."""
    entries = (remembered.verdict, remembered.target, remembered.serving)
    return {name for name in (remembered.benchmark_run, *(entry.evidence.run for entry in entries if entry)) if name}


def _is_aged(run: Run, oldest: datetime) -> bool:
    """Whether the run is too old; rounds that were judged again count from their measurement."""
    ends = [end for end in (run.completion_time, run.status.first_measured_time) if end]
    return bool(ends) and min(map(parse_time, ends)) < oldest


def _moved_image(run: Run, wanted: Mapping[str, Any], servers: Servers | None, arm: str) -> str:
    """A sentence if the run measured another image than the servers run now, both under the spec's image name. "" if
    the images are the same or cannot be compared, and for a run created because of exactly this image: it measured what
    its nodes have, and another run would measure the same."""
    if servers is None or arm not in {one["name"] for one in run.spec["arms"]}:
        return ""
    named, was = image_in(wanted, arm), run.image_of(arm)
    if image_in(run.spec, arm) != named or not differ(was, servers.image):
        return ""
    if _made_for(run) == image_digest(servers.image):
        return ""
    return (
        f"the image changed: {named} was {image_digest(was)[:SHOWN]} in {run.name}, but its servers run "
        f"{image_digest(servers.image)[:SHOWN]}"
    )


def _made_for(run: Run) -> str:
    """The digest of the servers' image that caused this run; "" if it has another reason."""
    return annotations(run.manifest).get(TOKEN, "") if run.trigger == Trigger.STALE else ""


def name_conflict(pool: Pool) -> str | None:
    """A message if another owner's object has the name of our servers or Service; we do not take it over."""
    name = child_name(pool.snapshot.name, pool.name)
    several = pool.server.accelerator.nodes > 1
    servers = (GROUPS, group_name(pool.snapshot.name, pool.name)) if several else ("Deployment", name)
    for kind, wanted in (servers, ("Service", name)):
        existing: Object | None = pool.snapshot.child(kind, wanted)
        if existing is not None and not owned_by(existing, pool.snapshot.owner.uid):
            return f"{kind} {wanted} is not managed by Paceline; rename the pool or remove the object"
    return None
