"""The rest of the pod: the contents of `engine.podTemplate` and `spec.accelerator`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from paceline.cli.importing.models import Mount
from paceline.core.manifest import Manifest
from paceline.core.names import MODELS
from paceline.core.server import TOPOLOGY_LABEL
from paceline.engines import ENGINES
from paceline.engines.importing import Note
from paceline.engines.pod_template import OF_A_ROUND, PATIENCE, PROBES, SERVER, SHARED_MEMORY, SIDECAR, WRITTEN

GPU, GPU_LABEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
RESOURCES = {row.capabilities.resource for row in ENGINES.values()}
_LABELS = (GPU_LABEL, "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-accelerator",
           "gpu.nvidia.com/class", "amd.com/gpu.product-name")  # fmt: skip
"""Node labels that name accelerators; the first that a pod selects becomes `productLabel`."""
DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30, "securityContext": {}, "enableServiceLinks": True,
    "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File", "resources": {},
}  # fmt: skip
"""Defaults that the API server adds to each pod template."""
PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
NOISE = ("kubectl.kubernetes.io/", "deployment.kubernetes.io/", "pod-template-hash")
SHM = "shm"
_OURS = (*OF_A_ROUND, WRITTEN, SHM, "models")
"""Names of Paceline's volumes."""
_ELSEWHERE = ("name", "image", "command", "args", "env", "ports", "resources", "volumeMounts", *PROBES)
"""Fields of the engine's container that are converted individually."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedAccelerator:
    """`selected`: keys of nodeSelector that it replaces. `questions` need a person's answer."""

    field: Mapping[str, Any]
    selected: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


def accelerator(
    pod: Mapping[str, Any], container: Mapping[str, Any], product: str, count: int | None
) -> RequestedAccelerator:
    """The accelerator that the Deployment requests; the options `product` and `count` override it."""
    resource, asked = _resource(container)
    questions = list[str]()
    number = count or (int(asked) if asked.isdecimal() else 0)
    if not asked.isdecimal() and not count:
        questions.append(f"resources has {resource}: {asked}, which is not a whole number; set --gpus N")
    elif not number:
        questions.append("the container asks for no GPU in resources.limits; set --gpus N")
    label, said = _product(pod)
    if not (product or said):
        questions.append(
            "nothing selects nodes by their accelerator; name it with --product, a value of the node label "
            f"{GPU_LABEL} (kubectl get nodes -L {GPU_LABEL})"
        )
    field = {"product": product or said or "unknown", "count": number or 1}
    if resource != GPU:
        field["resourceName"] = resource
    if label and not product and label != GPU_LABEL:
        field["productLabel"] = label
    selector = pod.get("nodeSelector") or {}
    if topology := selector.get(TOPOLOGY_LABEL):
        field["topology"] = str(topology)
    ours = (*(() if product else (label,)), TOPOLOGY_LABEL)
    selected = tuple(key for key in ours if key in selector)
    return RequestedAccelerator(field=field, selected=selected, questions=tuple(questions))


def _resource(container: Mapping[str, Any]) -> tuple[str, str]:
    """The extended resource and its amount as written."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    for name, amount in asked.items():
        if name in RESOURCES or name.endswith("/gpu") or name.startswith("nvidia.com/"):
            return name, str(amount)
    return GPU, "0"


def _product(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Label and value; ("", "") if the pod does not select exactly one product."""
    selector = pod.get("nodeSelector") or {}
    if label := next((each for each in _LABELS if each in selector), ""):
        return label, str(selector[label])
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    chosen = [one for term in terms for one in term.get("matchExpressions") or () if len(terms) == 1]
    for one in chosen:
        if one["operator"] == "In" and len(one["values"]) == 1 and (one["key"] in _LABELS or "gpu-name" in one["key"]):
            return one["key"], str(one["values"][0])
    return "", ""


PLACED = ("nodeSelector", "tolerations")
"""Pod fields that a resource has at the top of its spec."""


def placed(pod: Mapping[str, Any], taken: RequestedAccelerator) -> Manifest:
    """These fields, without what `spec.accelerator` already says."""
    ours = {"key": taken.field.get("resourceName", GPU), "operator": "Exists", "effect": "NoSchedule"}
    selector = {key: value for key, value in (pod.get("nodeSelector") or {}).items() if key not in taken.selected}
    tolerations = [one for one in pod.get("tolerations") or () if one != ours]
    return {name: value for name, value in zip(PLACED, (selector, tolerations), strict=True) if value}


def carried_template(
    template: Mapping[str, Any],
    container: Mapping[str, Any],
    engine: tuple[str, str],
    taken: RequestedAccelerator,
    cache: Mount | None,
    kept_paths: Sequence[str],
) -> tuple[Manifest, list[Note]]:
    """The contents of engine.podTemplate. `engine` is name and version; `kept_paths`: words that may name files below
    the cache's mount; if there are any, the mount is kept, read-only."""
    spec = {k: v for k, v in deepcopy(dict(template["spec"])).items() if DEFAULTS.get(k) != v}
    spec.pop("serviceAccount", None)
    for field in PLACED:
        spec.pop(field, None)
    own, notes = _server(container, engine, taken, cache, kept_paths)
    notes += _unclaimed(spec, container)
    others = [_bare(one) for one in spec.pop("containers") if one["name"] != container["name"]]
    before = [_bare(one) for one in spec.pop("initContainers", None) or ()]
    first = [one for one in before if not _only_fills(one, cache)]
    every, volumes = (own, *others, *first), spec.pop("volumes", None) or []
    used = {mount["name"] for one in every for mount in one.get("volumeMounts", ())}
    volumes = [one for one in volumes if not (cache and one["name"] == cache.volume and cache.volume not in used)]
    notes += [*_renamed(volumes, every), *_first(before, first)]
    volumes = [one for one in volumes if one != {"name": SHM, "emptyDir": {}}]  # servers have it anyway
    own["volumeMounts"] = [mount for mount in own["volumeMounts"] if mount["mountPath"] != SHARED_MEMORY]
    server = {"name": SERVER, **{key: value for key, value in own.items() if value}}
    lists = {"containers": [server, *others] if len(server) > 1 or others else []}
    lists |= {"initContainers": first, "volumes": volumes}
    spec |= {key: value for key, value in lists.items() if value}
    metadata = {
        kind: kept
        for kind in ("labels", "annotations")
        if (kept := {k: v for k, v in (_metadata(template).get(kind) or {}).items() if not k.startswith(NOISE)})
    }
    return {**({"metadata": metadata} if metadata else {}), **({"spec": spec} if spec else {})}, notes


def _unclaimed(spec: Manifest, container: Mapping[str, Any]) -> Iterator[Note]:
    """Removes, in place, device claims that only the engine's container has."""
    claimed = {one["name"] for one in (container.get("resources") or {}).get("claims") or ()}
    if not claimed:
        return
    text = f"{', '.join(sorted(claimed))}: left out, as spec.accelerator sets what servers take: for claims, write the "
    text += "DeviceClass into spec.accelerator.deviceClassName"
    yield Note(path=f"containers[{container['name']}].resources.claims", text=text)
    for one in (*spec["containers"], *(spec.get("initContainers") or ())):
        if one["name"] != container["name"]:
            claimed -= {each["name"] for each in (one.get("resources") or {}).get("claims") or ()}
    spec["resourceClaims"] = [one for one in spec.get("resourceClaims") or () if one["name"] not in claimed]
    if not spec["resourceClaims"]:
        del spec["resourceClaims"]


def _renamed(volumes: Sequence[Manifest], containers: Sequence[Manifest]) -> Iterator[Note]:
    """Renames, in place, volumes with Paceline's names; the first container's volume at /dev/shm becomes `shm`."""
    mounts = [mount for one in containers for mount in one.get("volumeMounts", ())]
    shared = {mount["name"] for mount in containers[0]["volumeMounts"] if mount["mountPath"] == SHARED_MEMORY}
    names: dict[str, str] = {}
    for volume in volumes:
        name = volume["name"]
        if name in shared and "emptyDir" in volume:
            same = volume["emptyDir"] == {"medium": "Memory"}
            volume["emptyDir"] = {key: value for key, value in (volume["emptyDir"] or {}).items() if key != "medium"}
            names[name], text = SHM, "" if same else f"becomes the volume {SHM}, the servers' memory at {SHARED_MEMORY}"
        else:
            names[name], text = f"own-{name}" if name in _OURS else name, f"is renamed own-{name}: {name} is Paceline's"
            if name in shared:
                text = f"is not mounted at {SHARED_MEMORY}: servers have memory of their own there, the volume {SHM}"
        if text and (names[name] != name or (name in shared and names[name] != SHM)):
            yield Note(path=f"volumes[{name}]", text=text)
    for item in (*volumes, *mounts):
        item["name"] = names.get(item["name"], item["name"])


def _only_fills(container: Mapping[str, Any], cache: Mount | None) -> bool:
    """Whether its only mount is the models' volume, writable: only the prefetch may write there."""
    mounts = container.get("volumeMounts") or ()
    ends = container.get("restartPolicy") != SIDECAR
    return bool(cache and mounts and ends) and all(
        cache and one["name"] == cache.volume and not one.get("readOnly") for one in mounts
    )


def _first(containers: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> Iterator[Note]:
    for one in containers:
        text = (
            "is carried over and runs before every server; if it only fetches the model, remove it: the prefetch "
            "does that"
        )
        if one.get("restartPolicy") == SIDECAR:
            text = "is carried over and runs next to every server, but in no round"
        if one not in kept:
            paths = ", ".join(mount["mountPath"] for mount in one["volumeMounts"])
            text = f"is left out with its only mount, {paths}: the models' volume, to which only the prefetch writes"
        yield Note(path=f"initContainers[{one['name']}]", text=text)


def _metadata(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return template.get("metadata") or {}


def _bare(container: Mapping[str, Any]) -> Manifest:
    """The container without the API server's defaults; restartPolicy stays, because it makes an init container a
    sidecar."""
    return {key: value for key, value in container.items() if DEFAULTS.get(key) != value or key == "restartPolicy"}


def _server(
    container: Mapping[str, Any],
    engine: tuple[str, str],
    taken: RequestedAccelerator,
    cache: Mount | None,
    kept_paths: Sequence[str],
) -> tuple[Manifest, list[Note]]:
    path, notes = f"containers[{container['name']}]", list[Note]()
    own = {key: value for key, value in _bare(container).items() if key not in _ELSEWHERE}
    resource = taken.field.get("resourceName", GPU)
    asked = {
        part: kept
        for part in ("requests", "limits")
        if (kept := {k: v for k, v in ((container.get("resources") or {}).get(part) or {}).items() if k != resource})
    }
    if asked:
        own["resources"] = asked
    own["volumeMounts"] = []
    for mount in container.get("volumeMounts") or ():
        if cache and mount["name"] == cache.volume:
            there = cache.path.rstrip("/")
            moved = there != MODELS or bool(cache.below)
            needed = moved and any(f"{there}/" in word for word in kept_paths)
            text = "is the cache: servers mount the claim at /models"
            notes.append(Note(path=f"{path}.volumeMounts[{mount['mountPath']}] ({mount['name']})", text=text))
            if needed:
                own["volumeMounts"].append({**mount, "readOnly": True})
            continue
        own["volumeMounts"].append(dict(mount))
    for probe in (one for one in PROBES if one in container):
        patience, note = _patience(probe, container[probe], engine, path)
        own |= {probe: patience} if patience else {}
        notes.append(note)
    return own, notes


def _patience(probe: str, said: Mapping[str, Any], engine: tuple[str, str], path: str) -> tuple[Manifest, Note]:
    """Carries over how often the probe runs. Leaves out its delays before the start (see `longest_start`) and a timeout
    that is too short for the path that Paceline's probe asks."""
    adapter = ENGINES[engine[0]]
    least = adapter.health_timeout_seconds if probe == "livenessProbe" else adapter.ready_answer_seconds(engine[1])
    written = {key: value for key, value in said.items() if PROBE_DEFAULTS.get(key) != value}
    kept = {
        key: value
        for key, value in written.items()
        if key in PATIENCE
        and probe != "startupProbe"
        and key != "initialDelaySeconds"
        and not (key == "timeoutSeconds" and value < least)
    }
    gone = _json({key: "…" if key == "exec" else value for key, value in written.items() if key not in kept})
    text = f"it asks the engine's own page, and a start may take until promotion.progressDeadline; left out: {gone}"
    return kept, Note(path=f"{path}.{probe}", text=text)


def longest_start(deployment: Mapping[str, Any], container: Mapping[str, Any]) -> int:
    """Seconds that the Deployment allows a server to start."""
    seconds = [int(deployment["spec"].get("progressDeadlineSeconds", 0))]
    for probe in (container[one] for one in PROBES if one in container):
        tries = int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3))
        seconds.append(int(probe.get("initialDelaySeconds", 0)) + tries)
    return max(seconds)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "), ensure_ascii=False)


def unread(deployment: Mapping[str, Any]) -> Iterator[Note]:
    """Notes for fields outside the pod template that a person has set."""
    spec, metadata = deployment.get("spec") or {}, deployment.get("metadata") or {}
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {"maxSurge": "25%", "maxUnavailable": "25%"}
    if strategy and (strategy.get("type"), rolling) != ("RollingUpdate", {"maxSurge": "25%", "maxUnavailable": "25%"}):
        text = f"{_json(strategy)} is left out: promotion.surge decides (Auto: one more server, if there is room)"
        yield Note(path="spec.strategy", text=text)
    for field, default in {"minReadySeconds": 0, "progressDeadlineSeconds": 600, "paused": False}.items():
        if spec.get(field, default) != default:
            yield Note(path=f"spec.{field}", text=f"{spec[field]} is left out; see promotion.progressDeadline")
    if spec.get("revisionHistoryLimit", 10) != 10:
        yield Note(path="spec.revisionHistoryLimit", text=f"{spec['revisionHistoryLimit']} is left out")
    for kind in ("labels", "annotations"):
        own = {key: value for key, value in (metadata.get(kind) or {}).items() if not key.startswith(NOISE)}
        if own:
            said = ", ".join(f"{key}={value:.80}" for key, value in own.items())
            text = "are the Deployment's own and left out; write those that your tools need into metadata"
            yield Note(path=f"metadata.{kind}", text=f"{said}: {text}")
