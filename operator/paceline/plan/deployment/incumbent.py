"""The incumbent: what a pool serves while its spec asks for another server. It goes on until the change is shown not to
be slower (`promotion.changes: Gated`).

Gated are the engine's type, version, image, args and env, the tensor parallelism, and the draft and shape of the
candidate that serves. All else goes at once: the place and the name (nodeSelector, podTemplate, keys, servedName …)
onto the incumbent's own rendering; the target and the accelerators with the whole edit. The mend of what does not run
is not gated.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from paceline import api
from paceline.api.engine import EngineChange
from paceline.api.status import Change, PoolStatus, Serving, Target
from paceline.core import (
    BASELINE,
    INCUMBENT,
    Arm,
    Changes,
    DeploymentSpec,
    Engine,
    PoolSettings,
    Server,
    server_of,
)
from paceline.core.manifest import Object
from paceline.engines.nodes import unmeasurable
from paceline.plan.deployment.runs import Run
from paceline.render import revision_of

SERVED = "served"
"""Field of a kept rendering: the server and the arm that it was rendered from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """What serves, on the place and under the name that the spec asks for now."""

    server: Server
    arm: Arm
    revision: str
    was: Target
    """As it was chosen."""
    measured: Arm
    """Its arm in a run about the spec's server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """Whether a change of the spec has to be measured before it serves: it is compared with `incumbent`; or why it goes
    `at_once`; or the target as the spec has it now, if only its place or name has `moved`. All are empty without a
    change."""

    incumbent: Incumbent | None = None
    at_once: str = ""
    moved: Target | None = None


InputsOf = Callable[[str], tuple[Server, Arm] | None]
"""Revision → what it was rendered from; None if that is not known."""
NO_CHANGE = Gated()
DOES_NOT_RUN = Gated(at_once="what serves does not run")
UNDONE = ("RolledBack", "Aborted", "TakenDown")
"""Reasons of a target that serves because another one was undone."""


def gated(
    spec: DeploymentSpec,
    pool: PoolSettings,
    server: Server,
    remembered: PoolStatus,
    inputs: InputsOf,
    judged: bool = False,
) -> Gated:
    """`spec`, `server` and the arms of `pool` are at commits. A pool that has not served yet has no incumbent.
    `judged`: the change was measured and not accepted."""
    target, serving = remembered.target, remembered.serving
    if serving is None or target is None:
        return NO_CHANGE
    rendered = {revision_of(server, arm) for arm in pool.arms}
    failed = {one.revision for one in remembered.holds if one.reason in ("NotReady", "Crashed")}
    if serving.revision in rendered - failed and serving.revision != target.revision:
        if target.revision in rendered or target.reason in UNDONE:
            return NO_CHANGE
        return Gated(moved=_served_last(remembered, serving))  # a change that was taken back during its roll-out
    was = _what_runs(remembered, target, serving, failed, judged)
    if was is None:
        return NO_CHANGE if target.revision in rendered else DOES_NOT_RUN
    if was.revision in rendered:
        return NO_CHANGE
    then = inputs(was.revision)
    if then is None:
        return Gated(at_once=f"neither a ControllerRevision nor a run has the inputs of revision {was.revision}")
    before, arm = then[0], replace(then[1], name=was.arm)  # a renamed one has the record of its first name
    if why := "; ".join(_at_once(spec, pool, server, before, arm)):
        return Gated(at_once=why)
    down = was.revision in failed or _fell_back(remembered)
    found = _beside(server, before, arm, was, to_baseline=down)
    if down and found.revision in failed:
        return DOES_NOT_RUN
    if found.revision not in rendered:
        return Gated(incumbent=found)
    if down or any(one.revision == found.revision for one in remembered.holds):
        return NO_CHANGE
    return Gated(
        moved=replace(was, revision=found.revision, surge=None, surge_waits_since="", ready=None, stands_since="")
    )


def _what_runs(
    entry: PoolStatus, target: Target, serving: Serving, failed: Collection[str], judged: bool
) -> Target | None:
    """The target, or what served last if that does not run; None if neither does. What was rejected is no mend, but the
    own baseline of what serves is: then it is still the target."""
    if target.revision not in failed:
        return target
    if serving.revision not in failed:
        return _served_last(entry, serving)
    return target if judged and target.arm != BASELINE else None


def _beside(server: Server, before: Server, arm: Arm, was: Target, *, to_baseline: bool) -> Incumbent:
    """`to_baseline`: without its draft, which is what it was compared with: nobody has measured the spec's baseline."""
    arm = Arm(name=BASELINE) if to_baseline else arm
    place = _moved(before, server)
    return Incumbent(
        server=place,
        arm=arm,
        revision=revision_of(place, arm),
        was=was,
        measured=replace(arm, name=INCUMBENT, engine=_own_engine(server, server_of(before, arm))),
    )


def _served_last(entry: PoolStatus, serving: Serving) -> Target:
    """With its reason: what a person promoted without evidence stays promoted."""
    before = next((change for change in entry.history if change.revision == serving.revision), Change())
    return Target(
        revision=serving.revision,
        arm=serving.arm,
        start_time=serving.start_time,
        evidence=serving.evidence,
        reason=before.reason,
        message=before.message,
    )


def _moved(before: Server, server: Server) -> Server:
    """`before` on the place and under the name of `server`: all but what is gated is of that."""
    then, now = before.engine, server.engine
    engine = replace(
        now,
        type=then.type,
        version=then.version,
        image=then.image,
        args=then.args,
        env=then.env,
        eagle3_targets=then.eagle3_targets,
        admin_key=now.admin_key if then.type == now.type else then.admin_key,
    )
    size = before.accelerator.tensor_parallel_size
    return replace(server, engine=engine, accelerator=replace(server.accelerator, tensor_parallel_size=size))


def _own_engine(server: Server, before: Server) -> Engine | None:
    """The gated part of `before`, as the engine of an arm that otherwise is as `server`; None if that is the same."""
    size, now = before.accelerator.tensor_parallel_size, server.accelerator.tensor_parallel_size
    own = replace(before.engine, tensor_parallel_size=0 if size == now else size)
    engine = EngineChange.between(server.engine, own).of(server.engine)
    return None if engine == server.engine else engine


def _fell_back(entry: PoolStatus) -> bool:
    """Whether speculation of the target stopped paying."""
    return any(
        one.reason == "Fallback" and entry.target and one.revision == entry.target.revision for one in entry.holds
    )


def served_of(kept: Object | None) -> tuple[Server, Arm] | None:
    """The server and the arm that a kept rendering was made from; None if this release cannot tell."""
    spec = kept and kept["data"].get(SERVED)
    if not spec:
        return None
    try:
        return api.served(spec)
    except api.InvalidManifestError:
        return None


def inputs_of(kept: Mapping[str, Object], runs: Iterable[Run], revision: str) -> tuple[Server, Arm] | None:
    """From the kept rendering; if that was deleted or has none, from a run that measured it."""
    if found := served_of(kept.get(revision)):
        return found
    measured = (api.run(one.manifest) for one in runs)
    pairs = ((one.server, arm) for one in measured for arm in one.arms if arm.name != INCUMBENT)
    return next((pair for pair in pairs if revision_of(*pair) == revision), None)


def _at_once(spec: DeploymentSpec, pool: PoolSettings, server: Server, before: Server, arm: Arm) -> Iterator[str]:
    """Why a change cannot or need not be measured."""
    if spec.promotion.changes is Changes.IMMEDIATE:
        yield "promotion.changes is Immediate"
    if unmeasurable(server):
        yield "servers of several nodes are not measured"
    if (before.target.source, before.target.commit) != (server.target.source, server.target.commit):
        yield "the target changed, and with it the answers"
    now = server.accelerator
    if replace(before.accelerator, tensor_parallel_size=now.tensor_parallel_size, memory=now.memory) != now.unpriced:
        yield "spec.accelerator changed"
    names = {each.name for each in pool.arms}
    if arm.name not in names and _own_engine(server, before) is None:
        yield f"candidate {arm.name} was removed"
