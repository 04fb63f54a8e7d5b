"""The last known objects of one kind."""

import marshal
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import cast

from paceline.kube.resources import Manifest, matches, version_of

NamespacedName = tuple[str, str]
"""Namespace ("" for cluster-scoped kinds) and name."""

OnChange = Callable[[str, Manifest, Manifest | None], None]
"""Called with ADDED, MODIFIED or DELETED, the object, and the store's previous version of it."""


def _key_of(manifest: Manifest) -> NamespacedName:
    return manifest["metadata"].get("namespace") or "", manifest["metadata"]["name"]


class Entry:
    """One object: its keys for lookup, and the rest. Python's dicts and strings take four to ten times the memory of
    the object's JSON, and packing reduces that to a fifth; unpacking 10 kB takes 60 µs."""

    __slots__ = ("_rest", "key", "labels", "uid", "version")

    def __init__(self, manifest: Manifest, packed: bool) -> None:
        metadata = manifest["metadata"]
        self.key = _key_of(manifest)
        self.version = version_of(manifest)
        self.uid: str | None = metadata.get("uid")
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self._rest: Manifest | bytes = zlib.compress(marshal.dumps(manifest), 1) if packed else manifest

    @property
    def manifest(self) -> Manifest:
        if isinstance(self._rest, bytes):
            return cast("Manifest", marshal.loads(zlib.decompress(self._rest)))
        return self._rest


Spaces = dict[str, dict[str, Entry]]
"""Namespace → name → object."""


class Store:
    """Filled from a list, a watch and the answers to our own writes, in any order: the higher resourceVersion wins, and
    `on_change` is called only for real changes. Objects are shared: do not edit.

    Objects with a label in `indexed` are found by its value without visiting others: if each pass searched its whole
    namespace, the cost of all passes would be quadratic. A `packed` store is for thousands of objects of which few are
    read at a time.
    """

    def __init__(
        self,
        prune: Callable[[Manifest], Manifest],
        on_change: OnChange,
        indexed: Collection[str] = (),
        packed: bool = False,
    ) -> None:
        self._prune = prune
        self._on_change = on_change
        self._indexed = tuple(indexed)
        self._packed = packed
        self._objects: Spaces = {}
        self._by_label: dict[tuple[str, str], Spaces] = {}
        """Label and value → the objects that have them."""
        self.version = 0
        """The version up to which lists and watches are complete."""

    def get(self, namespace: str | None, name: str) -> Manifest | None:
        entry = self._objects.get(namespace or "", {}).get(name)
        return entry.manifest if entry else None

    def select(
        self, namespace: str | None = None, labels: Mapping[str, str] | None = None, *, owner: str | None = None
    ) -> list[Manifest]:
        """Objects in the namespace (None: all) with these labels and an owner with this uid, ordered by name."""
        there = next(
            (self._by_label.get(label, {}) for label in (labels or {}).items() if label[0] in self._indexed),
            self._objects,
        )
        spaces = there.values() if namespace is None else [there.get(namespace, {})]
        entries = [entry for space in spaces for entry in space.values() if matches(entry.labels, labels or {})]
        found = [entry.manifest for entry in sorted(entries, key=lambda entry: entry.key)]
        return found if owner is None else [manifest for manifest in found if owner in _owners(manifest)]

    @property
    def namespaces(self) -> frozenset[str]:
        """Namespaces that have an object of the kind."""
        return frozenset(self._objects)

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def saw(self, manifest: Manifest) -> None:
        """Store the answer to our own write, ahead of the watch. Nothing happens if the watch was faster."""
        if self._entry(_key_of(manifest)) is None and version_of(manifest) <= self.version:
            return  # the watch is past this version and the object is gone: deleted since
        self._put(manifest)

    def observe(self, kind: str, manifest: Manifest) -> None:
        """Apply one watch event."""
        self.version = max(self.version, version_of(manifest))
        match kind:
            case "ADDED" | "MODIFIED":
                self._put(manifest)
            case "DELETED":
                known = self._entry(_key_of(manifest))
                if known is not None and version_of(manifest) >= known.version:
                    self._drop(known)

    def entry(self, manifest: Manifest) -> Entry:
        """The object in its stored form."""
        return Entry(self._prune(manifest), self._packed)

    def replace(self, items: Iterable[Manifest | Entry], version: int) -> None:
        """Apply a complete list at `version`: objects that it lacks are dropped, unless they are newer."""
        entries = [item if isinstance(item, Entry) else self.entry(item) for item in items]
        listed = {entry.key: entry for entry in entries}
        for known in self._entries():
            if known.key not in listed and known.version <= version:
                self._drop(known)
        for item in listed.values():
            self._put(item)
        self.version = max(self.version, version)

    def clear(self) -> None:
        """Remove every object: the cluster no longer has the kind."""
        for known in self._entries():
            self._drop(known)

    def _entry(self, key: NamespacedName) -> Entry | None:
        return self._objects.get(key[0], {}).get(key[1])

    def _entries(self) -> list[Entry]:
        return [entry for space in self._objects.values() for entry in space.values()]

    def _put(self, found: Manifest | Entry) -> None:
        key, version = (found.key, found.version) if isinstance(found, Entry) else (_key_of(found), version_of(found))
        known = self._entry(key)
        if known is not None and version <= known.version:
            return
        entry = found if isinstance(found, Entry) else self.entry(found)
        if known is not None and entry.uid != known.uid:
            self._drop(known)  # deleted and created again while we were not watching
            known = None
        if known is not None:
            self._take_out(known)
        namespace, name = entry.key
        for spaces in (self._objects, *(self._by_label.setdefault(label, {}) for label in self._labels(entry))):
            spaces.setdefault(namespace, {})[name] = entry
        self._on_change("ADDED" if known is None else "MODIFIED", entry.manifest, known.manifest if known else None)

    def _drop(self, known: Entry) -> None:
        self._take_out(known)
        manifest = known.manifest
        self._on_change("DELETED", manifest, manifest)

    def _take_out(self, known: Entry) -> None:
        _remove(self._objects, known.key)
        for label in self._labels(known):
            _remove(self._by_label[label], known.key)
            if not self._by_label[label]:
                del self._by_label[label]

    def _labels(self, entry: Entry) -> list[tuple[str, str]]:
        return [(label, entry.labels[label]) for label in self._indexed if label in entry.labels]


def _remove(spaces: Spaces, key: NamespacedName) -> None:
    namespace, name = key
    del spaces[namespace][name]
    if not spaces[namespace]:
        del spaces[namespace]


def _owners(manifest: Manifest) -> set[str]:
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}
