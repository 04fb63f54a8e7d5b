"""Writes status and carries out actions; no other module writes."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import assert_never

from paceline.controller import metrics
from paceline.controller.cluster import WatchedCluster
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.core.manifest import Object
from paceline.core.names import POOL_LABEL
from paceline.kube import ApiError, Conflict, Forbidden, Invalid, Manifest, ref_of
from paceline.kube.difference import difference, needs_status, stamped
from paceline.plan.step import Action, Adopt, Apply, Delete

log = logging.getLogger(__name__)

MANAGER = "paceline"
OWNER_MANAGER = "paceline-owner"
HANDOVER_MANAGER = "paceline-replicas"

KindAndName = tuple[str, str]
"""Kind and name of an object, in the namespace of its owner."""

SCALED = ("Deployment", "LeaderWorkerSet")


Confirm = Callable[[], Awaitable[None]]
"""Asks the server whether the object of a pass is unchanged since it was read; raises Conflict if not."""


async def publish(cluster: WatchedCluster, manifest: Manifest, status: Manifest) -> bool:
    """Write the status unless it is unchanged, because our own write would trigger another pass. Returns whether it was
    written. The status is replaced, not applied: an apply would keep fields added by others.

    Raises Conflict if the object has changed since it was read: a late write of the previous leader must not undo the
    decision of the next one. The queue then reads and decides again.
    """
    if not needs_status(manifest, status):
        return False
    _wrote(cluster, manifest, await cluster.api.replace_status({**manifest, "status": status}))
    return True


async def nothing_to_confirm() -> None:
    """Confirms nothing. Use it after a status write at the version that was read, which proves that the object was
    unchanged."""


async def execute(
    cluster: WatchedCluster, actions: Sequence[Action], confirm: Confirm = nothing_to_confirm
) -> Mapping[KindAndName, ApiError]:
    """Carry out the actions in order, and call `confirm` before the first write. A rejected action is returned and ends
    only its pool's actions; any other failure ends the pass, and the next pass starts from the state at that time."""
    refused: dict[KindAndName, ApiError] = {}
    stopped: set[str] = set()
    confirmed = False

    async def once() -> None:
        nonlocal confirmed
        if not confirmed:
            await confirm()
            confirmed = True

    for action in actions:
        obj = action.manifest if isinstance(action, Apply) else action.item
        pool = (obj["metadata"].get("labels") or {}).get(POOL_LABEL, "")
        if pool in stopped:
            continue
        try:
            await _do(cluster, action, once)
        except (Invalid, Forbidden) as error:
            stopped.add(pool)
            refused[obj["kind"], obj["metadata"]["name"]] = error
    return refused


async def _do(cluster: WatchedCluster, action: Action, confirm: Confirm) -> None:
    match action:
        case Apply(manifest, why, once):
            if once:
                await _is_not_there(cluster, manifest)
            await _apply(cluster, manifest, why, confirm)
        case Delete(obj, why):
            await confirm()
            ref = ref_of(obj, RECONCILED_KINDS)
            log.info("delete %s: %s", ref, why)
            await cluster.api.delete(ref, uid=obj["metadata"]["uid"])
            cluster.remade.deleted(ref)
            metrics.wrote(ref)
        case Adopt(obj, reference, why):
            await confirm()
            await _adopt(cluster, obj, reference, why)
        case _:
            assert_never(action)


async def _is_not_there(cluster: WatchedCluster, record: Manifest) -> None:
    """Raises Conflict if the record exists, because the list of this pass was then outdated. A record of another Job is
    foreign and is replaced."""
    ref = ref_of(record, RECONCILED_KINDS)
    found = await cluster.api.get(ref)
    if found and all(found.get("spec", {}).get(field) == record["spec"].get(field) for field in ("job", "fingerprint")):
        raise Conflict(409, "AlreadyExists", f"{ref} is recorded already; it is decided again")


async def _adopt(cluster: WatchedCluster, obj: Object, reference: Manifest, why: str) -> None:
    """Apply only the owner, with a separate field manager, because the rest of the object stays as it is. An object has
    at most one controller, so this owner does not become its controller before our next full apply."""
    log.info("adopt %s %s: %s", obj["kind"], obj["metadata"]["name"], why)
    owner = {key: value for key, value in reference.items() if key != "controller"}
    desired = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {
            **{key: obj["metadata"][key] for key in ("name", "namespace", "uid")},
            "ownerReferences": [owner],
        },
    }
    await _write(cluster, desired, OWNER_MANAGER)


async def _apply(cluster: WatchedCluster, manifest: Manifest, why: str, confirm: Confirm) -> None:
    metadata = manifest["metadata"]
    current = cluster.get(manifest["kind"], metadata["namespace"], metadata["name"])
    desired = stamped(manifest)
    changed = difference(current, desired) if current else "all of it"
    if changed is None:
        return
    ref = ref_of(manifest, RECONCILED_KINDS)
    if current is None:
        cluster.remade.check(ref, desired)
    await confirm()
    if current:  # update exactly this object: if it was deleted meanwhile, do not create another
        desired = desired | {"metadata": desired["metadata"] | {"uid": current["metadata"]["uid"]}}
        if _left_to_an_autoscaler(manifest):
            await _hand_over_replicas(cluster, current)
    log.info("apply %s %s/%s (%s): %s", manifest["kind"], metadata["namespace"], metadata["name"], changed, why)
    written = await _write(cluster, desired, MANAGER)
    if current is None:
        cluster.remade.note(ref, desired, written["metadata"]["uid"])


async def _write(cluster: WatchedCluster, desired: Manifest, manager: str) -> Manifest:
    return _wrote(cluster, desired, await cluster.api.apply(desired, manager=manager))


def _wrote(cluster: WatchedCluster, desired: Manifest, written: Manifest) -> Manifest:
    cluster.saw(written)
    metrics.wrote(ref_of(desired, RECONCILED_KINDS))
    return written


def _left_to_an_autoscaler(manifest: Manifest) -> bool:
    return manifest["kind"] in SCALED and "replicas" not in manifest["spec"]


async def _hand_over_replicas(cluster: WatchedCluster, current: Manifest) -> None:
    """Keep the number of replicas under another field manager; otherwise the API server would reset a field that no
    manager applies to its default, 1.

    Applies only if the number is ours. Raises Conflict if an autoscaler changes it in between."""
    live = await cluster.api.get(ref_of(current, RECONCILED_KINDS))
    if live is None or not _owns_replicas(live):
        return
    handover = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {key: live["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")},
        "spec": {"replicas": live["spec"].get("replicas", 1)},
    }
    await cluster.api.apply(handover, manager=HANDOVER_MANAGER)
    metrics.wrote(ref_of(handover, RECONCILED_KINDS))


def _owns_replicas(live: Manifest) -> bool:
    """Whether our last apply set the number, and it has not changed since."""
    return any(
        entry.get("manager") == MANAGER
        and entry.get("operation") == "Apply"
        and "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        for entry in live["metadata"].get("managedFields") or ()
    )
