"""What the user lays over our pods (`engine.podTemplate`).

The rule: maps merge; lists of named objects merge by name, ours first; anything else replaces. Two lists of core/v1 are
told apart otherwise: a volumeMount is known by its mountPath, for the name in it is the volume's; and an env entry
takes the place of ours as a whole, for `value` and `valueFrom` cannot stand side by side.

A served pod gets all of it. A round's pod gets what makes its server the same and decides where it runs (`IN_A_ROUND`):
no labels, or a Service of the user's would send it traffic; no sidecars; no probes and hooks. What Paceline owns is
refused before anything is rendered (`engines.pod_template`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.engines.pod_template import PROBES, SERVER, SIDECAR
from paceline.render.common import Manifest

KEYS: Mapping[str, str] = {"volumeMounts": "mountPath"}
WHOLE = frozenset({"env"})

IN_A_ROUND = frozenset({
    "dnsConfig", "dnsPolicy", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "imagePullSecrets",
    "nodeSelector", "os", "overhead", "resourceClaims", "resources", "runtimeClassName", "schedulerName",
    "securityContext", "serviceAccountName", "tolerations",
})  # fmt: skip
"""And volumes, init containers that end, and the node affinity."""
IN_A_FETCH = frozenset({"dnsConfig", "dnsPolicy", "hostAliases", "imagePullSecrets", "nodeSelector", "schedulerName",
                        "tolerations"})  # fmt: skip
"""The prefetch runs where the accelerators are, and takes none."""


def laid_over(base: Any, over: Any, field: str = "") -> Any:
    """`over` on `base`, both left as they are; `field` is where they stand."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **{key: laid_over(base[key], over[key], key) if key in base else over[key] for key in over}}
    key = KEYS.get(field, "name")
    if _named(base, key) and _named(over, key):
        return _joined(base, over, key, whole=field in WHOLE)
    return over


def without_probes(over: Mapping[str, Any]) -> Mapping[str, Any]:
    """For pods of a server that answer no HTTP: what was said of the server's probes has nothing to stand on."""
    spec = over.get("spec", {})
    containers = [_without(one, PROBES) if one["name"] == SERVER else one for one in spec.get("containers", ())]
    return {**over, **({"spec": {**spec, "containers": containers}} if containers else {})}


def in_a_round(over: Mapping[str, Any]) -> Manifest:
    """What of it a round's pod gets."""
    spec = over.get("spec", {})
    servers = [_without(one, (*PROBES, "lifecycle")) for one in spec.get("containers", ()) if one["name"] == SERVER]
    first = [one for one in spec.get("initContainers", ()) if one.get("restartPolicy") != SIDECAR]
    mounted = {mount.get("name") for one in (*servers, *first) for mount in _mounts(one)}
    parts = {
        "containers": servers,
        "initContainers": first,
        # One that only a sidecar mounts may be taken.
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
    """What of it the prefetch's pod gets: where it runs, and who may read the volume."""
    spec = over.get("spec", {})
    found = {field: value for field, value in spec.items() if field in IN_A_FETCH}
    groups = {key: spec["securityContext"][key] for key in SHARED if key in spec.get("securityContext", {})}
    affinity = node_affinity(over)
    return {
        **found,
        **({"securityContext": groups} if groups else {}),
        **({"affinity": {"nodeAffinity": affinity}} if affinity else {}),
    }


SHARED = ("fsGroup", "fsGroupChangePolicy", "seLinuxOptions", "supplementalGroups")
"""Of a pod's security context, what decides to whom the files on a volume belong: two pods that disagree would change
their owner back and forth."""


def node_affinity(over: Mapping[str, Any]) -> Manifest:
    """The nodes that servers are to run on. Affinity between pods concerns the servers among themselves."""
    found: Manifest = over.get("spec", {}).get("affinity", {}).get("nodeAffinity", {})
    return found


def _joined(base: Sequence[Any], over: Sequence[Any], key: str, whole: bool) -> list[Any]:
    """In the order of `base`, then what only `over` has."""
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
