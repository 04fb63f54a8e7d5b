"""All writing, in one place."""

import logging
from collections.abc import Mapping, Sequence
from typing import assert_never

from paceline.controller.cluster import Cluster
from paceline.controller.kinds import KINDS
from paceline.core.names import POOL_LABEL
from paceline.kube import ApiError, Forbidden, Invalid, Manifest, ref_of
from paceline.kube.difference import difference, needs_status, stamped
from paceline.plan.objects import Object
from paceline.plan.step import Action, Adopt, Apply, Delete

log = logging.getLogger(__name__)

MANAGER = "paceline"
STATUS_MANAGER = "paceline-status"
OWNER_MANAGER = "paceline-owner"
HANDOVER_MANAGER = "paceline-replicas"

Name = tuple[str, str]
"""Kind and name of an object, in the namespace of its owner."""

SCALED = ("Deployment", "LeaderWorkerSet")


async def publish(cluster: Cluster, manifest: Manifest, status: Manifest) -> None:
    """Nothing is written when nothing changed: a write of our own wakes us up again.

    Conflict if the object has changed since it was read: whoever was the leader until now must not undo with a late
    write what the next one has decided. The queue reads and decides again."""
    if not needs_status(manifest, status):
        return
    metadata = manifest["metadata"]
    wanted = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")},
        "status": status,
    }
    cluster.saw(await cluster.api.apply(wanted, manager=STATUS_MANAGER, subresource="status"))


async def execute(cluster: Cluster, actions: Sequence[Action]) -> Mapping[Name, ApiError]:
    """In order. What is refused is answered, and ends the actions of its pool alone; any other failure ends the pass,
    and the next one starts from what is there by then."""
    refused: dict[Name, ApiError] = {}
    stopped: set[str] = set()
    for action in actions:
        found = action.manifest if isinstance(action, Apply) else action.item
        pool = (found["metadata"].get("labels") or {}).get(POOL_LABEL, "")
        if pool in stopped:
            continue
        try:
            await _do(cluster, action)
        except (Invalid, Forbidden) as error:
            stopped.add(pool)
            refused[found["kind"], found["metadata"]["name"]] = error
    return refused


async def _do(cluster: Cluster, action: Action) -> None:
    match action:
        case Apply(manifest, why):
            await _apply(cluster, manifest, why)
        case Delete(found, why):
            ref = ref_of(found, KINDS)
            log.info("delete %s: %s", ref, why)
            await cluster.api.delete(ref, uid=found["metadata"]["uid"])
        case Adopt(found, reference, why):
            await _adopt(cluster, found, reference, why)
        case _:
            assert_never(action)


async def _adopt(cluster: Cluster, found: Object, reference: Manifest, why: str) -> None:
    """By a manager of its own, for we do not say here what else is to be in the object. No object has two controllers,
    so until our next apply of it this owner is none."""
    log.info("adopt %s %s: %s", found["kind"], found["metadata"]["name"], why)
    owner = {key: value for key, value in reference.items() if key != "controller"}
    wanted = {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {
            **{key: found["metadata"][key] for key in ("name", "namespace", "uid")},
            "ownerReferences": [owner],
        },
    }
    cluster.saw(await cluster.api.apply(wanted, manager=OWNER_MANAGER))


async def _apply(cluster: Cluster, manifest: Manifest, why: str) -> None:
    metadata = manifest["metadata"]
    current = cluster.get(manifest["kind"], metadata["namespace"], metadata["name"])
    wanted = stamped(manifest)
    changed = difference(current, wanted) if current else "all of it"
    if changed is None:
        return
    if current:  # an update of this very object: of one that was deleted meanwhile it must not make another
        wanted = wanted | {"metadata": wanted["metadata"] | {"uid": current["metadata"]["uid"]}}
        if _left_to_an_autoscaler(manifest):
            await _hand_over_replicas(cluster, current)
    log.info("apply %s %s/%s (%s): %s", manifest["kind"], metadata["namespace"], metadata["name"], changed, why)
    cluster.saw(await cluster.api.apply(wanted, manager=MANAGER))


def _left_to_an_autoscaler(manifest: Manifest) -> bool:
    return manifest["kind"] in SCALED and "replicas" not in manifest["spec"]


async def _hand_over_replicas(cluster: Cluster, current: Manifest) -> None:
    """Without it the API server would reset the number to 1, the default of a field that nobody applies any more.

    Only of a number that is ours, and as it is now: Conflict if an autoscaler changes it in between. Of one that is
    another's nothing is written."""
    live = await cluster.api.get(ref_of(current, KINDS))
    if live is None or not _owns_replicas(live):
        return
    kept = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {key: live["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")},
        "spec": {"replicas": live["spec"].get("replicas", 1)},
    }
    await cluster.api.apply(kept, manager=HANDOVER_MANAGER)


def _owns_replicas(live: Manifest) -> bool:
    """Our last apply set the number, and nobody has changed it since."""
    return any(
        entry.get("manager") == MANAGER
        and entry.get("operation") == "Apply"
        and "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        for entry in live["metadata"].get("managedFields") or ()
    )
