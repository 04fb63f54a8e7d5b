"""`paceline render FILE`: the objects that the operator would make to serve, server argv included, without a cluster.

For each SpeculativeDeployment of the file: the cache claim, if it asks for one, and the prefetch; then for each pool
the ControllerRevision that keeps the rendering, the Deployment (a LeaderWorkerSet for several nodes) and the Service.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import yaml

from paceline import api
from paceline.cli.manifests import RefusedError, deployments
from paceline.core import BASELINE, Arm, DeploymentSpec
from paceline.plan.deployment.look import Pool, Snapshot, datasets_of, models_of, pin, pools, to_bring
from paceline.render import Manifest, Settings, claim, controller_revision, fetch_job, rendering, servers, service

UNKNOWN = "0" * 40


class Plain(yaml.SafeDumper):
    """Without anchors: what is printed is meant to be read and applied."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "render",
        help="print the objects that would serve a SpeculativeDeployment as YAML",
        epilog="Exit: 0; 1 for a FILE that `paceline validate` refuses, and for a pool or an arm that is not in it.",
    )
    parser.add_argument("file", metavar="FILE", help="YAML or JSON, any number of documents")
    parser.add_argument("--pool", help="this pool alone, without claim and prefetch")
    parser.add_argument("--arm", help="as if this arm were served (default: the baseline)", default=BASELINE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        objects = [one for manifest in deployments(args.file) for one in rendered(manifest, args.pool, args.arm)]
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    except LookupError as missing:
        print(f"{args.file}: {missing}", file=sys.stderr)
        return 1
    print(f"# Without a cluster the commits of models are not known: {UNKNOWN} stands for each.")
    print(yaml.dump_all(objects, Dumper=Plain, sort_keys=False, width=120), end="")
    return 0


def rendered(manifest: Manifest, pool: str | None, arm: str) -> Iterator[Manifest]:
    """The objects of all pools that have this arm. Raises LookupError for a pool or an arm that is not there."""
    spec = api.deployment(manifest)
    snapshot = Snapshot(
        manifest=_created(manifest), spec=spec, invalid="", children={}, settings=Settings(image="paceline")
    )
    pinned = pin(spec, {(one.source, one.revision): UNKNOWN for one in to_bring(spec)})
    views = pools(snapshot, pinned, datetime.now(UTC))
    chosen = [view for view in views if pool in (None, view.name)]
    if not chosen:
        raise LookupError(f"no pool {pool}; there are {', '.join(view.name for view in views)}")
    if not any(arm in view.arms for view in chosen):
        known = "; ".join(f"pool {view.name} has {', '.join(view.arms)}" for view in chosen)
        raise LookupError(f"no arm {arm}; {known}")
    if pool is None:
        yield from _shared(snapshot, spec)
    for view in chosen:
        if arm in view.arms:
            yield from _serving(view, view.arms[arm], spec)


def _shared(snapshot: Snapshot, spec: DeploymentSpec) -> Iterator[Manifest]:
    if spec.cache_claim:
        yield claim(snapshot.namespace, spec.cache_claim)
    yield fetch_job(snapshot.owner, spec.server, models_of(spec), snapshot.settings, datasets=datasets_of(spec))


def _serving(view: Pool, arm: Arm, spec: DeploymentSpec) -> Iterator[Manifest]:
    owner, revision = view.snapshot.owner, view.revision(arm)
    deadline = spec.promotion.progress_deadline
    kept = rendering(owner, view.name, view.server, arm, revision, view.snapshot.settings, deadline)
    yield controller_revision(owner, view.name, revision, kept)
    yield servers(owner, view.name, kept, view.spec.replicas, deadline, {})
    yield service(owner, view.name, view.server)


def _created(manifest: Manifest) -> Manifest:
    """As the API server would name it."""
    metadata: dict[str, Any] = {"namespace": "default", "uid": "not-yet-created", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}
