"""`paceline render FILE`: the objects that the operator would make, including server argv, without a cluster.

For each SpeculativeDeployment of the file: the cache claim, if it asks for one, and the prefetch; then for each pool
the ControllerRevision that keeps the rendering, the Deployment (a LeaderWorkerSet for several nodes) and the Service.
For each BenchmarkRun: each arm's command as a comment, then the Job of its first round. If servers or rounds claim
devices, their ResourceClaimTemplate comes first.
"""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import yaml

from paceline import api
from paceline.api.text import AS_NUMBER
from paceline.cli import options
from paceline.cli.manifests import RUN, RefusedError, ours
from paceline.cli.profiles import DEPLOYMENT_KIND
from paceline.core import BASELINE, Arm, DeploymentSpec, Purpose, RunSpec, Surge
from paceline.core.manifest import Manifest
from paceline.core.text import count
from paceline.plan.deployment.companions import routes
from paceline.plan.deployment.models import artifacts_of, datasets_of, models_of, pin
from paceline.plan.deployment.pool import Pool, pools
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.run.searching import Searching
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.run.steps.check import unpinned
from paceline.render import (
    Owner,
    Settings,
    claim,
    claim_templates,
    controller_revision,
    fetch_job,
    rendering,
    round_claims,
    round_job,
    servers,
    service,
)
from paceline.render.round_job import NO_CELLS, round_plan
from paceline.render.where import ANYWHERE

_UNKNOWN = "0" * 40
_SETTINGS = Settings(image="paceline")
MOST_NAMES = 12
"""Arms that a sentence lists."""


class Plain(yaml.SafeDumper):
    """Writes YAML without anchors, and scripts as separate lines, so that the output can be read and applied."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Plain.add_representer(str, _text)
Plain.add_implicit_resolver(*AS_NUMBER)


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "render",
        epilog="Exit: 0; 1 if `paceline validate` refuses FILE, if a run lacks the commits of its models, or if FILE "
        "has no such pool or arm.",
    )
    options.add_file(parser, "YAML or JSON, any number of documents; - for stdin")
    parser.add_argument("--pool", help="only this pool, without claim and prefetch")
    parser.add_argument(
        "--arm",
        help="arm to serve (default: the baseline); for a run, the only arm besides the baseline (default: all arms)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        rendering = [(manifest, tuple(rendered_objects(manifest, args.pool, args.arm))) for manifest in ours(args.file)]
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    except LookupError as missing:
        print(f"{args.file}: {missing}", file=sys.stderr)
        return 1
    if any(manifest["kind"] == DEPLOYMENT_KIND for manifest, _ in rendering):
        print(f"# Without a cluster the commits of models are not known: {_UNKNOWN} stands for each.")
    for manifest, _ in rendering:
        print("".join(f"# {line}\n" for line in _searches(manifest, args.pool)), end="")
    print("---\n".join(_printed(manifest, obj) for manifest, objects in rendering for obj in objects), end="")
    return 0


def rendered_objects(manifest: Manifest, pool: str | None = None, arm: str | None = None) -> Iterator[Manifest]:
    """The objects of a deployment or run. Raises LookupError for an unknown pool or arm, RefusedError for a run without
    commits."""
    return (_round if manifest["kind"] == RUN else _served)(manifest, pool, arm)


def _served(manifest: Manifest, pool: str | None, arm: str | None) -> Iterator[Manifest]:
    """The objects of all pools with this arm."""
    spec, arm = api.deployment(manifest), arm or BASELINE
    snapshot = Snapshot(manifest=_created(manifest), spec=spec, invalid="", children={}, settings=_SETTINGS)
    pinned = pin(spec, {(one.source, one.revision): _UNKNOWN for one in artifacts_of(spec)})
    views = pools(snapshot, pinned, datetime.now(UTC))
    chosen = [view for view in views if pool in (None, view.name)]
    if not chosen:
        raise LookupError(f"no pool {pool}; there are {', '.join(view.name for view in views)}")
    if not any(arm in view.arms for view in chosen):
        known = "; ".join(f"pool {view.name} has {_named(view.arms)}" for view in chosen)
        raise LookupError(f"no arm {arm}; {known}")
    if pool is None:
        yield from _shared(snapshot, spec)
    for view in chosen:
        if arm in view.arms:
            yield from _serving(view, view.arms[arm], spec)


def _named(arms: Iterable[str]) -> str:
    """The arms' names in a sentence, shortened, because a search has dozens."""
    names = list(arms)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _searches(manifest: Manifest, pool: str | None) -> Iterator[str]:
    """For each pool with a search, its arms; each can be rendered by name."""
    if manifest["kind"] == RUN:
        return
    for one in api.deployment(manifest).pools:
        if one.search and pool in (None, one.name):
            names = [arm.name for arm in one.arms if arm.name != BASELINE]
            yield f"Pool {one.name} searches among {len(names)} candidates, {names[0]} to {names[-1]}: see --arm."


def _shared(snapshot: Snapshot, spec: DeploymentSpec) -> Iterator[Manifest]:
    if spec.cache_claim:
        yield claim(snapshot.namespace, spec.cache_claim)
    if artifacts_of(spec):
        yield fetch_job(snapshot.owner, spec.server, models_of(spec), snapshot.settings, datasets=datasets_of(spec))


def _serving(view: Pool, arm: Arm, spec: DeploymentSpec) -> Iterator[Manifest]:
    owner, revision = view.snapshot.owner, view.revision(arm)
    deadline = spec.promotion.progress_deadline
    kept = rendering(owner, view.name, view.server, arm, revision, view.snapshot.settings, deadline)
    yield controller_revision(owner, view.name, revision, kept)
    yield from claim_templates(owner, view.name, kept)
    yield servers(owner, view.name, kept, view.spec.replicas, deadline, {}, spec.promotion.surge is Surge.AUTO)
    yield service(owner, view.name, view.server.accelerator.nodes)
    yield from routes(owner, spec, view.spec, view.server)


def _round(manifest: Manifest, pool: str | None, arm: str | None) -> Iterator[Manifest]:
    """The first round's Job; with an arm, a later round in which only that arm is undecided."""
    spec, owner = api.run(manifest), _owner(manifest)
    if pool not in (None, spec.pool):
        raise LookupError(f"no pool {pool}; the run {owner.name} is of {spec.pool}")
    arms = [one for one in spec.arms if arm in (None, one.name) or one.name == BASELINE]
    if arm not in (None, *(one.name for one in arms)):
        raise LookupError(f"no arm {arm}; the run {owner.name} has {_named(one.name for one in spec.arms)}")
    if missing := [text for model, text in unpinned(spec) if model.commit is None]:
        raise RefusedError("\n".join(f"{owner.name}: {text}" for text in missing))
    cells = NO_CELLS
    if spec.purpose is Purpose.SEARCH and arm is None:
        cells = Searching(spec=spec, records=()).cells
        arms = [one for one in spec.arms if one.name in cells]
    yield from round_claims(owner, spec)
    yield round_job(owner, spec, round_plan(owner, spec, tuple(arms), 0, 0, cells), ANYWHERE, _SETTINGS)


def _owner(manifest: Manifest) -> Owner:
    metadata = _created(manifest)["metadata"]
    return Owner(kind=RUN, name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])


def _printed(manifest: Manifest, one: Manifest) -> str:
    about = _about(api.run(manifest), one) if manifest["kind"] == RUN and one["kind"] == "Job" else ()
    return "".join(f"# {line}\n" for line in about) + yaml.dump(one, Dumper=Plain, sort_keys=False, width=120)


def _about(spec: RunSpec, job: Manifest) -> Iterator[str]:
    """Which values are still missing, and the servers' commands as typed in a shell."""
    asked = RoundJob(job=job, pod=None).plan
    number = count(len(asked.arms), "server")
    yield f"The first round of {asked.run}: {number}, one after another on the same accelerators."
    yield from (f"{arm.name}: {shlex.join(arm.argv)}" for arm in asked.arms)
    yield from (f"To fill in: {text}" for _, text in unpinned(spec))


def _created(manifest: Manifest) -> Manifest:
    """The object with the metadata that the API server would add."""
    metadata: dict[str, Any] = {"namespace": "default", "uid": "not-yet-created", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}
