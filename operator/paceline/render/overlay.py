"""The user's overlay for pods (`engine.podTemplate`).

Maps merge; lists of named objects merge by name, ours first; anything else replaces. Two lists of core/v1 have other
rules: the key of a volumeMount is its mountPath, because its name is the volume's; and an env entry replaces ours as a
whole, because `value` and `valueFrom` exclude each other.

A serving pod gets all of it. A round's pod gets only what keeps its server the same and what decides its placement
(`IN_A_ROUND`): no labels, because a Service of the user would send it traffic; no sidecars; no probes and hooks. Fields
that Paceline owns are refused before anything is rendered (`engines.pod_template`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.core.manifest import Manifest
from paceline.engines.pod_template import PROBES, SERVER, SIDECAR

MERGE_KEYS: Mapping[str, str] = {"volumeMounts": "mountPath"}
WHOLE = frozenset({"env"})

IN_A_ROUND = frozenset({
    "dnsConfig", "dnsPolicy", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "imagePullSecrets",
    "os", "overhead", "resourceClaims", "resources", "runtimeClassName", "schedulerName", "securityContext",
    "serviceAccountName",
})  # fmt: skip
"""Fields of the overlay that a round's pod gets, besides volumes, init containers that end, and the node affinity."""
IN_A_FETCH = frozenset({"dnsConfig", "dnsPolicy", "hostAliases", "imagePullSecrets", "schedulerName"})
"""Fields of the overlay that the prefetch's pod gets: it runs on the accelerators' nodes, but takes no accelerator."""


def laid_over(base: Any, over: Any, field: str = "") -> Any:
    """`base` overridden by `over`; neither is changed. `field` is the field that contains them."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **{key: laid_over(base[key], over[key], key) if key in base else over[key] for key in over}}
    key = MERGE_KEYS.get(field, "name")
    if _named(base, key) and _named(over, key):
        return _joined(base, over, key, whole=field in WHOLE)
    return over


def without_probes(over: Mapping[str, Any]) -> Mapping[str, Any]:
    """The overlay for a server's worker pods, which answer no HTTP: without the server's probes."""
    spec = over.get("spec", {})
    containers = [_without(one, PROBES) if one["name"] == SERVER else one for one in spec.get("containers", ())]
    return {**over, **({"spec": {**spec, "containers": containers}} if containers else {})}


def in_a_round(over: Mapping[str, Any]) -> Manifest:
    """The part for a round's pod."""
    spec = over.get("spec", {})
    servers = [_without(one, (*PROBES, "lifecycle")) for one in spec.get("containers", ()) if one["name"] == SERVER]
    first = [one for one in spec.get("initContainers", ()) if one.get("restartPolicy") != SIDECAR]
    mounted = {mount.get("name") for one in (*servers, *first) for mount in _mounts(one)}
    parts = {
        "containers": servers,
        "initContainers": first,
        # A volume that only a sidecar mounts may be in use elsewhere.
        "volumes": [volume for volume in spec.get("volumes", ()) if volume["name"] in mounted | {"shm"}],
    }
    annotations = over.get("metadata", {}).get("annotations")
    return {
        **({"metadata": {"annotations": annotations}} if annotations else {}),
        "spec": {
            **{field: value for field, value in spec.items() if field in IN_A_ROUND},
            **{field: items for field, items in parts.items() if items},
        },
    }


def in_a_fetch(over: Mapping[str, Any]) -> Manifest:
    """The part for the prefetch's pod: its placement, and the groups that own the volume."""
    spec = over.get("spec", {})
    fields = {field: value for field, value in spec.items() if field in IN_A_FETCH}
    groups = {key: spec["securityContext"][key] for key in _SHARED if key in spec.get("securityContext", {})}
    affinity = node_affinity(over)
    return {
        **fields,
        **({"securityContext": groups} if groups else {}),
        **({"affinity": {"nodeAffinity": affinity}} if affinity else {}),
    }


_SHARED = ("fsGroup", "fsGroupChangePolicy", "seLinuxOptions", "supplementalGroups")
"""Fields of a pod's security context that set the owner of a volume's files: two pods that disagree would change it
back and forth."""


def node_affinity(over: Mapping[str, Any]) -> Manifest:
    """The user's node affinity. Pod affinity only concerns servers."""
    affinity: Manifest = over.get("spec", {}).get("affinity", {}).get("nodeAffinity", {})
    return affinity


def _joined(base: Sequence[Any], over: Sequence[Any], key: str, whole: bool) -> list[Any]:
    """The merged list: items of `base` in their order, then items that only `over` has."""
    items = {item[key]: item for item in base}
    for item in over:
        there = items.get(item[key])
        items[item[key]] = item if there is None or whole else laid_over(there, item)
    return list(items.values())


def _named(value: Any, key: str) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, Mapping) and isinstance(item.get(key), str) for item in value)
    )


def _without(container: Mapping[str, Any], fields: Sequence[str]) -> Mapping[str, Any]:
    return {key: value for key, value in container.items() if key not in fields}


def _mounts(container: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (*container.get("volumeMounts", ()), *container.get("volumeDevices", ()))
