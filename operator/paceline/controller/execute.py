"""All writing, in one place."""

import logging
from collections.abc import Sequence
from typing import assert_never

from paceline.controller.cluster import Cluster
from paceline.controller.kinds import KINDS
from paceline.kube import Manifest, needs_apply, ref_of
from paceline.kube.needs import stamped
from paceline.plan.terms import Action, Apply, Delete

log = logging.getLogger(__name__)

MANAGER = "paceline"
STATUS_MANAGER = "paceline-status"


async def publish(cluster: Cluster, manifest: Manifest, status: Manifest) -> None:
    """Nothing is written when nothing changed: a write of our own wakes us up again."""
    if manifest.get("status") == status:
        return
    metadata = manifest["metadata"]
    wanted = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "status": status,
    }
    cluster.saw(await cluster.api.apply(wanted, manager=STATUS_MANAGER, subresource="status"))


async def execute(cluster: Cluster, actions: Sequence[Action]) -> None:
    """In order; a failure ends the pass, and the next one starts from what is there by then."""
    for action in actions:
        match action:
            case Apply(manifest, why):
                await _apply(cluster, manifest, why)
            case Delete(found, why):
                ref = ref_of(found, KINDS)
                log.info("delete %s: %s", ref, why)
                await cluster.api.delete(ref, uid=found["metadata"]["uid"])
            case _:
                assert_never(action)


async def _apply(cluster: Cluster, manifest: Manifest, why: str) -> None:
    metadata = manifest["metadata"]
    current = cluster.get(manifest["kind"], metadata["namespace"], metadata["name"])
    if current is not None and not needs_apply(current, manifest):
        return
    log.info("apply %s %s/%s: %s", manifest["kind"], metadata["namespace"], metadata["name"], why)
    cluster.saw(await cluster.api.apply(stamped(manifest), manager=MANAGER))
