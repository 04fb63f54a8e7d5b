"""Rules about `engine.podTemplate`: misspelt fields, and fields that Paceline sets itself, each with the way out.

`render.overlay` applies the template to the pods. Field names are those of core/v1 in Kubernetes 1.34.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from posixpath import normpath
from typing import Any

from paceline.core import Server
from paceline.core.names import FILES, IMAGES, MODELS, child_name
from paceline.engines.adapter import Adapter
from paceline.engines.refusal import Refusal

Fault = tuple[str, str]
"""A path below the pod template, and a message with the way out."""

SERVER = "server"
"""The container that runs the engine."""
CLIENT, CONCLUDE, ARM = "client", "conclude", "arm"
"""The containers of a round's pod: the sidecar that measures, the last one, and the prefix of those of the arms."""
CONTROL = "/ctl"
OF_A_ROUND = ("ctl-in", "ctl-out", "tmp")
"""Volumes in a round's pod. The first two have one writer each: a link that a server wrote where the client writes
would lead it to other files."""
WRITTEN = "paceline-files"
"""Volume for files generated from the resource, at `core.names.FILES`."""
DEVICES = "accelerators"
"""The device claim of the server's container, if it gets its accelerators by claim."""
OF_IMAGES = "image-"
"""Prefix of volumes that are model images."""
SHARED_MEMORY = "/dev/shm"
SIDECAR = "Always"
"""The restartPolicy of a sidecar: an init container that keeps running."""

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
PATIENCE = frozenset({"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold",
                      "terminationGracePeriodSeconds"})  # fmt: skip
"""Fields of a probe that the user may set: its frequency and timeouts, not the request."""

_POD: Mapping[str, str] = {
    "restartPolicy": "a server that exits is always restarted, a round never: leave it out",
    "activeDeadlineSeconds": "would stop a server that serves: leave it out",
    "automountServiceAccountToken": "no server speaks to the API server: leave it out",
    "serviceAccount": "write serviceAccountName",
    "enableServiceLinks": "stays false, or variables of Services would be read as the engine's: leave it out",
    "hostPID": "a round stops all processes of an arm, and the node's are not the arm's: leave it out",
    "shareProcessNamespace": "must stay true: without it a server whose scheduler died exits 0; leave it out",
    "nodeName": "bypasses the scheduler: use spec.nodeSelector, or affinity here",
    "nodeSelector": "write it in spec.nodeSelector",
    "tolerations": "write them in spec.tolerations",
    "hostname": "is the name by which the nodes of a server find each other: leave it out",
    "subdomain": "is the name by which the nodes of a server find each other: leave it out",
    "setHostnameAsFQDN": "is the name by which the nodes of a server find each other: leave it out",
    "ephemeralContainers": "are added to a running pod: use kubectl debug",
    "priority": "follows from priorityClassName: set that instead",
}
_CONTAINER: Mapping[str, str] = {
    "image": "write it in spec.engine.image",
    "command": "is rendered from the resource; further arguments go into spec.engine.args",
    "args": "would follow the rendered command; write them in spec.engine.args",
    "ports": "the engine's port is Paceline's; a container of your own may have others",
    "terminationMessagePath": "Paceline reads the last lines of the server's log from it: leave it out",
    "terminationMessagePolicy": "Paceline reads the last lines of the server's log from it: leave it out",
    "restartPolicy": "a server that exits is always restarted: leave it out",
}
OUR_KEYS = ("paceline.dev/", "app.kubernetes.io/managed-by", "leaderworkerset.sigs.k8s.io/", "batch.kubernetes.io/",
            "apps.kubernetes.io/", "statefulset.kubernetes.io/", "pod-template-hash", "controller-revision-hash",
            "controller-uid", "job-name")  # fmt: skip
"""Prefixes of labels and annotations by which the cluster and Paceline select pods."""
IDENTITIES = ("serviceAccountToken", "podCertificate")
"""Sources of a projected volume that let a pod speak as its service account."""
_OF_THE_CLUSTER = "system-"
"""Prefix of PriorityClasses that outrank all users' pods."""

POD_FIELDS = frozenset({
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy",
    "enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers",
    "hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os",
    "overhead", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims",
    "resources", "restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext",
    "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes",
})  # fmt: skip
CONTAINER_FIELDS = frozenset({
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports",
    "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules", "securityContext",
    "startupProbe", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty",
    "volumeDevices", "volumeMounts", "workingDir",
})  # fmt: skip

MAPS = ("metadata", "metadata.labels", "metadata.annotations", "spec", "spec.affinity", "spec.securityContext")
TEXTS = ("metadata.labels", "metadata.annotations")
"""Fields that map strings to strings."""
LISTS = ("spec.topologySpreadConstraints", "spec.hostAliases", "spec.resourceClaims")
_NAMED = ("spec.containers", "spec.initContainers", "spec.volumes", "spec.imagePullSecrets")


def arm_container(arm: str) -> str:
    """Name of the container of an arm, in a round's pod."""
    return child_name(ARM, arm)


def is_arm(container: str) -> bool:
    return container.startswith(f"{ARM}-")


def refusals(server: Server, adapter: Adapter) -> Iterator[Refusal]:
    """Faults of shape; if there are none, faults of content."""
    over = server.engine.pod_template
    faults = tuple(_misshapen(over)) or (*_unknown(over), *_managed(over, server, adapter))
    for where, message in faults:
        yield Refusal(rule="pod-template", path=f"engine.podTemplate.{where}", message=message)
    for where, message in _listening(over, adapter.port) if not faults else ():
        yield Refusal(rule="port-taken", path=f"engine.podTemplate.{where}", message=message)


def _listening(over: Mapping[str, Any], port: int) -> Iterator[Fault]:
    """Containers next to the engine that use its port: as one of theirs, or after --port."""
    for where, container in _containers(over):
        first = where.startswith("spec.initContainers") and container.get("restartPolicy") != SIDECAR
        if first or container["name"] == SERVER:
            continue
        message = f"the engine listens at {port}, and the containers of a pod share its ports: take another"
        for i, one in enumerate(_at(container, "ports", ())):
            if _at(one, "containerPort", None) == port:
                yield f"{where}.ports[{i}].containerPort", message
        for field in ("command", "args"):
            words = [str(word) for word in container.get(field) or ()]
            for i, word in enumerate(words):
                if word == f"--port={port}" or words[i : i + 2] == ["--port", str(port)]:
                    yield f"{where}.{field}[{i}]", message


def _misshapen(over: Mapping[str, Any]) -> Iterator[Fault]:
    for path in MAPS:
        if not isinstance(at := _at(over, path, {}), Mapping):
            yield path, f"must be a map; got {at!r:.80}"
        elif path in TEXTS:
            for key, value in at.items():
                if not isinstance(value, str):
                    yield f"{path}.{key}", f"must be a string: put it in quotes; got {value!r:.80}"
    for path in (*LISTS, *_NAMED):
        if not _is_list(at := _at(over, path, ())):
            yield path, f"must be a list; got {at!r:.80}"
        elif path in _NAMED:
            yield from _unnamed(path, at)
    for where, container in _containers(over):
        for field in ("env", "volumeMounts"):
            if not _is_list(at := container.get(field, ())) or not all(isinstance(item, Mapping) for item in at):
                yield f"{where}.{field}", f"must be a list of objects; got {at!r:.80}"
        for field in ("resources", "securityContext", "lifecycle", *PROBES):
            if not isinstance(at := container.get(field, {}), Mapping):
                yield f"{where}.{field}", f"must be a map; got {at!r:.80}"


def _unnamed(path: str, items: Sequence[Any]) -> Iterator[Fault]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            engines = f"; the engine's container is {SERVER}" if path == "spec.containers" else ""
            yield f"{path}[{i}].name", f"must be set{engines}"
        elif name in seen:
            yield f"{path}[{i}].name", f"{name} is given twice; keep one"
        else:
            seen.add(name)


def _unknown(over: Mapping[str, Any]) -> Iterator[Fault]:
    for key in over:
        if key not in ("metadata", "spec"):
            yield key, "is not a field here: write metadata or spec"
    for key in _at(over, "metadata", {}):
        if key not in ("labels", "annotations"):
            yield f"metadata.{key}", "is not a field here: write labels or annotations"
    yield from _misspelt("spec", _at(over, "spec", {}), POD_FIELDS)
    for where, container in _containers(over):
        yield from _misspelt(where, container, CONTAINER_FIELDS)


def _misspelt(where: str, fields: Mapping[str, Any], known: frozenset[str]) -> Iterator[Fault]:
    """Reports only near misses of known names: a newer Kubernetes may have added fields."""
    for name in fields:
        if name not in known and (near := get_close_matches(name, known, n=1, cutoff=0.8)):
            yield f"{where}.{name}", f"is not a field here; did you mean {near[0]}?"


def _managed(over: Mapping[str, Any], server: Server, adapter: Adapter) -> Iterator[Fault]:
    for kind in ("labels", "annotations"):
        for key in _at(over, f"metadata.{kind}", {}):
            if key.startswith(OUR_KEYS):
                yield f"metadata.{kind}.{key}", "is set by the cluster or by Paceline, to select pods: leave it out"
    spec = _at(over, "spec", {})
    for field, way_out in _POD.items():
        if field in spec:
            yield f"spec.{field}", way_out
    for i, claim in enumerate(_at(spec, "resourceClaims", ())):
        if isinstance(claim, Mapping) and claim.get("name") == DEVICES:
            yield f"spec.resourceClaims[{i}].name", f"{DEVICES} is the claim of spec.accelerator: take another name"
    if str(priority := spec.get("priorityClassName", "")).startswith(_OF_THE_CLUSTER):
        yield "spec.priorityClassName", f"{priority} is for the cluster's own pods: name a class of yours, or none"
    yield from (*_volumes(spec), *_mounts(spec, server))
    for where, container in _containers(over):
        if where.startswith("spec.containers") and container["name"] == SERVER:
            yield from _server_container(where, container, server, adapter)
        elif container["name"] in (SERVER, CLIENT, CONCLUDE) or is_arm(container["name"]):
            yield f"{where}.name", f"{container['name']} is a container of Paceline's own: take another name"
        elif where.startswith("spec.containers") or container.get("restartPolicy") == SIDECAR:
            yield from _accelerators(where, container, server.accelerator.resource_name)


def _accelerators(where: str, container: Mapping[str, Any], resource: str) -> Iterator[Fault]:
    """The pod would take more than `accelerator.count`, on which plans, loans and rounds rely."""
    for kind in ("limits", "requests"):
        asked = (container.get("resources", {}).get(kind) or {}).get(resource)
        if str(asked or 0) != "0":
            yield f"{where}.resources.{kind}", f"{resource} is counted only for the server: leave it out"


def _volumes(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for i, volume in enumerate(spec.get("volumes", ())):
        where = f"spec.volumes[{i}]"
        match volume["name"]:
            case "models":
                yield where, "holds the models: write it in spec.cache"
            case name if name in OF_A_ROUND:
                yield f"{where}.name", f"{name} is a volume of a benchmark's pod: take another name"
            case name if name.startswith(OF_IMAGES):
                yield f"{where}.name", f"{OF_IMAGES}… are volumes of models (oci://): take another name"
            case name if name == WRITTEN:
                yield f"{where}.name", f"{name} holds files that Paceline writes: take another name"
            case "shm" if set(volume) - {"name", "emptyDir"}:
                yield where, f"is memory at {SHARED_MEMORY}: only its emptyDir.sizeLimit can be set"
        for j, source in enumerate(_at(volume, "projected.sources", ())):
            for identity in IDENTITIES:
                if isinstance(source, Mapping) and identity in source:
                    yield f"{where}.projected.sources[{j}].{identity}", _POD["automountServiceAccountToken"]


def _server_container(where: str, container: Mapping[str, Any], server: Server, adapter: Adapter) -> Iterator[Fault]:
    for field, way_out in _CONTAINER.items():
        if field in container:
            yield f"{where}.{field}", way_out
    for probe in PROBES:
        for field in sorted(set(container.get(probe, {})) - PATIENCE):
            yield f"{where}.{probe}.{field}", f"is set by the engine; you may set {', '.join(sorted(PATIENCE))}"
    if "preStop" in container.get("lifecycle", {}):
        yield f"{where}.lifecycle.preStop", "is Paceline's: it waits for endpoints to be updated; leave it out"
    for part in ("limits", "requests"):
        wanted = container.get("resources", {}).get(part)
        if isinstance(wanted, Mapping) and server.accelerator.resource_name in wanted:
            name = server.accelerator.resource_name
            yield f"{where}.resources.{part}.{name}", "write it in spec.accelerator.count"
    for i, mount in enumerate(container.get("volumeMounts", ())):
        path = _plain(mount.get("mountPath", ""))
        ours = (MODELS, FILES, adapter.jit_cache, SHARED_MEMORY)
        if path in ours or f"{path}/".startswith((f"{CONTROL}/", f"{IMAGES}/")):
            yield f"{where}.volumeMounts[{i}].mountPath", f"{path} is mounted by Paceline: take another path"


def _mounts(spec: Mapping[str, Any], server: Server) -> Iterator[Fault]:
    """Only the prefetch writes models, which other servers share; only a round's containers use its volumes."""
    cache = server.cache
    read_only = {"models"}
    for volume in spec.get("volumes", ()):
        claim, host = _at(volume, "persistentVolumeClaim.claimName", None), _at(volume, "hostPath.path", None)
        if (cache.claim and claim == cache.claim) or (cache.host_path and _within(host, cache.host_path)):
            read_only.add(volume["name"])
    for where, container in _containers({"spec": spec}):
        for i, mount in enumerate(container.get("volumeMounts", ())):
            if mount.get("name") in read_only and mount.get("readOnly") is not True:
                yield f"{where}.volumeMounts[{i}].readOnly", "must be true: the volume holds every server's models"
            if (name := mount.get("name")) in OF_A_ROUND:
                yield f"{where}.volumeMounts[{i}].name", f"{name} is a volume of a benchmark's pod: mount one of yours"


def _plain(path: Any) -> str:
    return normpath(f"/{str(path).lstrip('/')}")


def _within(path: Any, directory: str) -> bool:
    """Whether the paths are equal, or one is below the other."""
    left, right = (f"{_plain(each)}/" for each in (path, directory))
    return left.startswith(right) or right.startswith(left)


def _containers(over: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Valid containers (objects), with their paths."""
    for field in ("containers", "initContainers"):
        items = _at(over, f"spec.{field}", ())
        for i, container in enumerate(items if _is_list(items) else ()):
            if isinstance(container, Mapping):
                yield f"spec.{field}[{i}]", container


def _at(over: Any, path: str, default: Any) -> Any:
    """The value at the path; `default` if it is missing, or if a step on the way is not a map."""
    for step in path.split("."):
        if not isinstance(over, Mapping) or step not in over:
            return default
        over = over[step]
    return over


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
