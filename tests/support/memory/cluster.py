"""A Kubernetes API server's store in memory: one version for everything, and all that ever happened in order.

Synchronous and without faults; `MemoryApi` gives a client's view of it. Objects go in and come out as copies.
"""

import asyncio
import copy
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.memory.fields import (
    LIST_KEYS,
    Fields,
    ListKeys,
    Manager,
    applied,
    managed_fields,
    updated,
)
from tests.support.memory.selector import selects

from paceline.kube import KINDS, Conflict, Gone, Invalid, Kinds, Listing, Manifest, NotFound, Ref, Resource, ref_of

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

SERVERS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
)
"""Metadata that only the server writes."""

IMMUTABLE: Mapping[str, str] = {"Job": "spec.template", "Deployment": "spec.selector", "ControllerRevision": "data"}
"""Kind → what of it can never change."""

DEFAULT_REPLICAS: Mapping[str, int] = {"Deployment": 1, "LeaderWorkerSet": 1}
"""The one default that an operator stumbles over: a field that was set and is dropped does not keep its value."""


@dataclass(frozen=True, slots=True)
class Change:
    """`old` is None for a creation, `new` for a deletion."""

    version: int
    ref: Ref
    old: Manifest | None
    new: Manifest | None


@dataclass(slots=True)
class Stored:
    manifest: Manifest
    managers: dict[Manager, Fields] = field(default_factory=dict)


class Cluster:
    """`immutable` adds kinds to IMMUTABLE; keyed lists of custom kinds are read from their `crds`."""

    def __init__(
        self,
        *,
        kinds: Kinds = KINDS,
        crds: Iterable[Manifest] = (),
        immutable: Mapping[str, str] = {},
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.kinds = kinds
        self.now = now
        self._immutable = {**IMMUTABLE, **immutable}
        self._keys: dict[str, ListKeys] = {
            crd["spec"]["names"]["kind"]: {**LIST_KEYS, **list_keys(crd)} for crd in crds
        }
        self._keys["Service"] = {**LIST_KEYS, "ports": ("port", "protocol")}
        self._objects: dict[Ref, Stored] = {}
        self._uids = 0
        self.absent: set[Resource] = set()
        """Kinds that nobody has installed."""
        self.logs: dict[tuple[str, str], str] = {}
        """Namespace and pod → what its client has written."""
        self.version = 1
        self.oldest = 1
        """Watches from before this version get Gone."""
        self.changes: list[Change] = []
        self.bookmarks = 0
        """How many times open watches have been told the version."""
        self._changed = asyncio.Event()
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})

    # Reading

    def get(self, ref: Ref, at: int | None = None) -> Manifest | None:
        """The object, as it was at version `at`."""
        return copy.deepcopy(self._view(at).get(ref))

    def peek(self, resource: Resource) -> list[Manifest]:
        """As `list`, but the objects themselves: not to be edited."""
        found = [stored.manifest for ref, stored in self._objects.items() if ref.resource == resource]
        found.sort(key=lambda manifest: (manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]))
        return found

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        selector: str = "",
        at: int | None = None,
        fields: str = "",
    ) -> Listing:
        """Everything that matches, as it was at version `at`, ordered by namespace and name."""
        self.served(resource)
        matching = selects(selector)
        found = [
            copy.deepcopy(manifest)
            for ref, manifest in self._view(at).items()
            if ref.resource == resource
            and namespace in (None, ref.namespace)
            and matching(manifest)
            and _has(manifest, fields)
        ]
        found.sort(key=lambda manifest: (manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]))
        return Listing(found, str(self.version if at is None else at))

    def since(self, version: int) -> Iterable[Change]:
        """What happened after `version`; Gone if that is forgotten."""
        if version < self.oldest:
            raise Gone(410, "Expired", f"too old resource version: {version} ({self.oldest})")
        return [change for change in self.changes if change.version > version]

    def compact(self) -> None:
        """Forget the past: a watch can start only from now on."""
        self.oldest = self.version

    def bookmark(self) -> None:
        """Tell every open watch the current version."""
        self.bookmarks += 1
        self._wake()

    async def changed(self) -> None:
        """Return after the next change or bookmark."""
        await self._changed.wait()

    # Writing

    def apply(self, manifest: Manifest, *, manager: str, force: bool = True) -> Manifest:
        ref, stored = self._find(manifest)
        metadata = manifest["metadata"]
        if stored is None and metadata.get("uid"):
            raise Conflict(409, "Conflict", f"uid mismatch: no existing object was found for {ref}")
        live = copy.deepcopy(stored.manifest) if stored else {"metadata": {}}
        uids = metadata.get("uid"), live["metadata"].get("uid")
        if uids[0] not in (None, uids[1]):
            raise Conflict(422, "Invalid", f"{ref}: metadata.uid: field is immutable")
        if stored:
            self._check_version(ref, stored, metadata.get("resourceVersion"))
        sent = self._sent(ref, manifest)
        who = Manager(manager, "Apply")
        keys = self._keys_of(ref)
        result, managers = applied(live, sent, who, stored.managers if stored else {}, force=force, keys=keys)
        return self._commit(ref, stored, result, managers)

    def create(self, manifest: Manifest, manager: str = "paceline") -> Manifest:
        ref, stored = self._find(manifest)
        if stored is not None:
            raise Conflict(409, "AlreadyExists", f"{ref} already exists")
        sent = self._sent(ref, manifest)
        managers = updated({}, sent, Manager(manager, "Update"), {}, self._keys_of(ref))
        return self._commit(ref, None, {"metadata": {}} | sent, managers)

    def update(self, manifest: Manifest, manager: str = "paceline", subresource: str | None = None) -> Manifest:
        ref, stored = self._find(manifest)
        if stored is None:
            raise NotFound(404, "NotFound", f"{ref} not found")
        if not manifest["metadata"].get("resourceVersion"):
            raise Invalid(422, "Invalid", f"{ref}: metadata.resourceVersion: must be specified for an update")
        self._check_version(ref, stored, manifest["metadata"]["resourceVersion"])
        sent, old = (self._sent(ref, one, subresource) for one in (manifest, stored.manifest))
        who = Manager(manager, "Update", subresource or "")
        mine = {w: what for w, what in stored.managers.items() if w.subresource == (subresource or "")}
        rest = {w: what for w, what in stored.managers.items() if w not in mine}
        managers = rest | updated(old, sent, who, mine, self._keys_of(ref))
        servers = {key: stored.manifest["metadata"][key] for key in SERVERS if key in stored.manifest["metadata"]}
        if subresource:
            result = {**copy.deepcopy(stored.manifest), "status": sent.get("status", {})}
        else:
            result = {**sent, "metadata": sent.get("metadata", {}) | servers}
            result |= {"status": stored.manifest["status"]} if "status" in stored.manifest else {}
        return self._commit(ref, stored, result, managers)

    def replace_status(self, manifest: Manifest) -> Manifest:
        """At any version, if none is said."""
        ref, stored = self._find(manifest)
        if stored is None:
            raise NotFound(404, "NotFound", f"{ref} not found")
        metadata = {"resourceVersion": stored.manifest["metadata"]["resourceVersion"]} | manifest["metadata"]
        return self.update(manifest | {"metadata": metadata}, subresource="status")

    def set_status(self, manifest: Manifest, status: Mapping[str, Any]) -> Manifest:
        """What a controller of the cluster does: write the status of an object, over whatever is there now."""
        current = self._objects[ref_of(manifest, self.kinds)].manifest
        if current.get("status") == status:
            return current
        return self.update(current | {"status": dict(status)}, manager="cluster", subresource="status")

    def delete(self, ref: Ref, *, uid: str | None = None, propagation: str = "Background") -> bool:
        stored = self._objects.get(ref)
        if stored is None or uid not in (None, stored.manifest["metadata"]["uid"]):
            return False
        manifest = copy.deepcopy(stored.manifest)
        metadata = manifest["metadata"]
        if propagation == "Foreground":
            metadata["finalizers"] = sorted({*(metadata.get("finalizers") or ()), "foregroundDeletion"})
        if metadata.get("finalizers"):
            if "deletionTimestamp" not in metadata:
                metadata["deletionTimestamp"] = self._time()
                metadata["generation"] += 1
            self._commit(ref, stored, manifest, stored.managers)
        else:
            self._remove(ref, stored.manifest)
        return True

    # Inside

    def served(self, resource: Resource) -> None:
        """NotFound for a kind that is absent or was never heard of."""
        if resource in self.absent or resource not in self.kinds.values():
            raise NotFound(404, "NotFound", "the server could not find the requested resource")

    def _find(self, manifest: Manifest) -> tuple[Ref, Stored | None]:
        try:
            ref = ref_of(manifest, self.kinds)
        except KeyError as unknown:
            raise NotFound(404, "NotFound", f"no such kind or no namespace: {unknown}") from unknown
        self.served(ref.resource)
        stored = self._objects.get(ref)
        if stored is None and ref.namespace is not None:
            home = Ref(self.kinds["v1", "Namespace"], None, ref.namespace)
            if home not in self._objects:
                raise NotFound(404, "NotFound", f'namespaces "{ref.namespace}" not found')
        return ref, stored

    def _sent(self, ref: Ref, manifest: Manifest, subresource: str | None = None) -> Manifest:
        """What of a request counts: the status on the status subresource, everything else on the object itself."""
        if subresource == "status":
            content = {"status": manifest["status"]} if "status" in manifest else {}
        else:
            metadata = {k: v for k, v in manifest["metadata"].items() if k not in (*SERVERS, "name", "namespace")}
            content = {k: v for k, v in manifest.items() if k not in ("apiVersion", "kind", "metadata", "status")}
            content |= {"metadata": metadata} if metadata else {}
        clean: Manifest = _no_nulls(content, custom=ref.resource not in KINDS.values())
        return clean

    def _view(self, at: int | None) -> Mapping[Ref, Manifest]:
        view = {ref: stored.manifest for ref, stored in self._objects.items()}
        if at is None:
            return view
        for change in reversed(self.changes):
            if change.version <= at:
                break
            if change.old is None:
                del view[change.ref]
            else:
                view[change.ref] = change.old
        return view

    def _keys_of(self, ref: Ref) -> ListKeys:
        return self._keys.get(ref.resource.kind, LIST_KEYS)

    def _check_version(self, ref: Ref, stored: Stored, version: str | None) -> None:
        if version not in (None, stored.manifest["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", f"{ref}: the object has been modified")

    def _commit(self, ref: Ref, stored: Stored | None, result: Manifest, managers: dict[Manager, Fields]) -> Manifest:
        old = stored.manifest if stored else None
        new = {"apiVersion": ref.resource.api_version, "kind": ref.resource.kind, **copy.deepcopy(result)}
        metadata = new["metadata"]
        metadata |= {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
        if ref.resource.kind in DEFAULT_REPLICAS:
            new.setdefault("spec", {}).setdefault("replicas", DEFAULT_REPLICAS[ref.resource.kind])
        _check_owners(ref, new)
        if old is None:
            self._uids += 1
            metadata |= {"uid": str(uuid.UUID(int=self._uids)), "creationTimestamp": self._time(), "generation": 1}
            _check_name(ref)
        elif stored is not None and managers == stored.managers and _content(new) == _content(old):
            return copy.deepcopy(old)
        else:
            self._check_immutable(ref, old, new)
            if _spec(new) != _spec(old):
                metadata["generation"] = old["metadata"]["generation"] + 1
        if old is not None and metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            return self._remove(ref, new)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        metadata["managedFields"] = managed_fields(managers, ref.resource.api_version, self._time())
        self._objects[ref] = Stored(new, managers)
        self._log(Change(self.version, ref, old, new))
        return copy.deepcopy(new)

    def _remove(self, ref: Ref, last: Manifest) -> Manifest:
        old = self._objects.pop(ref).manifest
        self.version += 1
        self._log(Change(self.version, ref, old, None))
        return copy.deepcopy(last)

    def _check_immutable(self, ref: Ref, old: Manifest, new: Manifest) -> None:
        path = self._immutable.get(ref.resource.kind)
        if path and _at(old, path) != _at(new, path):
            raise Invalid(422, "Invalid", f"{ref}: {path}: field is immutable")

    def _log(self, change: Change) -> None:
        self.changes.append(change)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _time(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _has(manifest: Manifest, fields: str) -> bool:
    """A field selector, `a.b=value,…`, or none."""

    def at(path: str) -> Any:
        found: Any = manifest
        for key in path.split("."):
            found = (found or {}).get(key)
        return found

    return all(at(path) == wanted for path, _, wanted in (term.partition("=") for term in fields.split(",") if term))


def list_keys(crd: Manifest) -> ListKeys:
    """The keyed lists that a CRD's schema names, by the name of the field; the others of these names, by their path."""
    found: dict[str, tuple[str, ...]] = {}
    plain: dict[str, str] = {}

    def walk(schema: Mapping[str, Any], path: tuple[str, ...]) -> None:
        for name, child in (schema.get("properties") or {}).items():
            if child.get("x-kubernetes-list-type") == "map":
                found[name] = tuple(child["x-kubernetes-list-map-keys"])
            elif child.get("type") == "array":
                plain[".".join((*path, name))] = name
            walk(child, (*path, name))
        if isinstance(schema.get("items"), Mapping):
            walk(schema["items"], path)

    for version in crd["spec"]["versions"]:
        walk(version["schema"]["openAPIV3Schema"], ())
    return found | {path: () for path, name in plain.items() if name in found}


def _no_nulls(value: Any, custom: bool, path: str = "") -> Any:
    """A copy as the server reads it: null is "not set" in built-in kinds, and refused in custom ones."""
    match value:
        case dict():
            nulls = [name for name, child in value.items() if child is None]
            if nulls and custom:
                raise Invalid(422, "Invalid", f"{path}.{nulls[0]}: Invalid value: null")
            return {k: _no_nulls(child, custom, f"{path}.{k}") for k, child in value.items() if child is not None}
        case list():
            return [_no_nulls(item, custom, f"{path}[{n}]") for n, item in enumerate(value)]
        case _:
            return value


def _content(manifest: Manifest) -> Manifest:
    """What makes two states of an object differ: not who owns it, nor when that was written down."""
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in ("managedFields", "resourceVersion")}
    return manifest | {"metadata": metadata}


def _spec(manifest: Manifest) -> Manifest:
    """What a generation counts the changes of."""
    return {key: value for key, value in manifest.items() if key not in ("metadata", "status")}


def _at(manifest: Any, path: str) -> Any:
    for step in path.split("."):
        manifest = (manifest or {}).get(step)
    return manifest


def _check_owners(ref: Ref, manifest: Manifest) -> None:
    if sum(bool(owner.get("controller")) for owner in manifest["metadata"].get("ownerReferences") or ()) > 1:
        why = "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true"
        raise Invalid(422, "Invalid", f"{ref}: {why}")


def _check_name(ref: Ref) -> None:
    if not NAME.fullmatch(ref.name) or len(ref.name) > 253:
        raise Invalid(422, "Invalid", f"{ref}: metadata.name: Invalid value: a lowercase RFC 1123 subdomain is needed")
