"""`paceline render FILE`: the objects that would serve and measure, without a cluster."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.core import BASELINE, Arm, DeploymentSpec
from paceline.plan.deployment.look import Pool, Snapshot, models_of, pin, pools
from paceline.render import Manifest, Settings, claim, controller_revision, fetch_job, rendering, servers, service


class Plain(yaml.SafeDumper):
    """Without anchors: what is printed is meant to be read and applied."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("render", help="print the objects of a SpeculativeDeployment as YAML")
    parser.add_argument("file", type=Path)
    parser.add_argument("--pool", help="this pool alone")
    parser.add_argument("--arm", help="as if this arm were served (default: the baseline)", default=BASELINE)


def run(args: argparse.Namespace) -> int:
    """0; 1 with one line for each problem of the file."""
    for manifest in _deployments(args.file):
        found = api.problems(manifest)
        if found:
            for problem in found:
                print(f"{args.file}: {problem}", file=sys.stderr)
            return 1
        try:
            objects = list(rendered(manifest, args.pool, args.arm))
        except LookupError as missing:
            print(f"{args.file}: {missing}", file=sys.stderr)
            return 1
        print("# Without a cluster a revision's commit is not known: paths show the revision instead.")
        print(yaml.dump_all(objects, Dumper=Plain, sort_keys=False, width=120), end="")
    return 0


def rendered(manifest: Manifest, pool: str | None, arm: str) -> Iterator[Manifest]:
    """Claim, prefetch, then for each pool its kept revision, servers and Service."""
    spec = api.deployment(manifest)
    snapshot = Snapshot(
        manifest=_created(manifest), spec=spec, invalid="", children={}, settings=Settings(image="paceline")
    )
    views = pools(snapshot, pin(spec, {(m.source, m.revision): m.revision for m in models_of(spec)}))
    chosen = [view for view in views if pool in (None, view.name)]
    if not chosen:
        raise LookupError(f"no pool {pool}; there are {', '.join(view.name for view in views)}")
    if pool is None:
        yield from _shared(snapshot, spec)
    for view in chosen:
        yield from _serving(view, _arm(view, arm), spec)


def _shared(snapshot: Snapshot, spec: DeploymentSpec) -> Iterator[Manifest]:
    if spec.cache_claim:
        yield claim(snapshot.namespace, spec.cache_claim)
    yield fetch_job(snapshot.owner, spec.server, models_of(spec), snapshot.settings)


def _serving(view: Pool, arm: Arm, spec: DeploymentSpec) -> Iterator[Manifest]:
    owner, revision = view.snapshot.owner, view.revision(arm)
    deadline = spec.promotion.progress_deadline
    kept = rendering(owner, view.name, view.server, arm, revision, view.snapshot.settings, deadline)
    yield controller_revision(owner, view.name, revision, kept)
    yield servers(owner, view.name, kept, view.spec.replicas, deadline, {})
    yield service(owner, view.name, view.server)


def _arm(view: Pool, name: str) -> Arm:
    if name not in view.arms:
        raise LookupError(f"pool {view.name} has no arm {name}; there are {', '.join(view.arms)}")
    return view.arms[name]


def _created(manifest: Manifest) -> Manifest:
    """As the API server would name it."""
    metadata: dict[str, Any] = {"namespace": "default", "uid": "not-yet-created", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}


def _deployments(file: Path) -> Iterator[Manifest]:
    for document in yaml.safe_load_all(file.read_text()):
        if isinstance(document, dict) and document.get("kind") == "SpeculativeDeployment":
            yield document
