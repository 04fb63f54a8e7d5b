"""The objects of one kind as last heard of."""

from collections.abc import Callable, Collection, Iterable, Mapping

from paceline.kube.resources import Manifest, matches, version_of

Key = tuple[str, str]
"""Namespace ("" for cluster-scoped kinds) and name."""

OnChange = Callable[[str, Manifest, Manifest | None], None]
"""Called with ADDED, MODIFIED or DELETED, the object, and what the store held of it before."""


Spaces = dict[str, dict[str, Manifest]]
"""Namespace → name → object."""


def key_of(manifest: Manifest) -> Key:
    return manifest["metadata"].get("namespace") or "", manifest["metadata"]["name"]


class Store:
    """Filled from a list, a watch and the answers to own writes, in whatever order these arrive: the higher
    resourceVersion wins, and what is announced to `on_change` has really changed. Objects are shared: do not edit.

    Objects with one of the labels `indexed` are found by its value without a look at any other: a pass that looked
    through its namespace would make all passes together grow with the square of the objects."""

    def __init__(
        self, prune: Callable[[Manifest], Manifest], on_change: OnChange, indexed: Collection[str] = ()
    ) -> None:
        self._prune = prune
        self._on_change = on_change
        self._indexed = tuple(indexed)
        self._objects: Spaces = {}
        self._by_label: dict[tuple[str, str], Spaces] = {}
        """Label and value → the objects that have it."""
        self.version = 0
        """The version up to which lists and watches have told us everything."""

    def get(self, namespace: str | None, name: str) -> Manifest | None:
        return self._objects.get(namespace or "", {}).get(name)

    def select(
        self, namespace: str | None = None, labels: Mapping[str, str] | None = None, *, owner: str | None = None
    ) -> list[Manifest]:
        """Objects in the namespace (None: in all) with these labels and an owner of this uid, ordered by name."""
        there = next(
            (self._by_label.get(label, {}) for label in (labels or {}).items() if label[0] in self._indexed),
            self._objects,
        )
        spaces = there.values() if namespace is None else [there.get(namespace, {})]
        selected = [
            manifest
            for space in spaces
            for manifest in space.values()
            if matches(manifest["metadata"].get("labels") or {}, labels or {})
            and (owner is None or owner in _owners(manifest))
        ]
        return sorted(selected, key=key_of)

    @property
    def namespaces(self) -> frozenset[str]:
        """Those that have an object of the kind."""
        return frozenset(self._objects)

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def saw(self, manifest: Manifest) -> None:
        """Take in the answer to an own write, ahead of the watch. Nothing happens if the watch was faster."""
        known = self.get(*key_of(manifest))
        if known is None and version_of(manifest) <= self.version:
            return  # the watch is past it and has no such object: deleted since
        self._put(manifest)

    def observe(self, kind: str, manifest: Manifest) -> None:
        """Take in one watch event."""
        self.version = max(self.version, version_of(manifest))
        match kind:
            case "ADDED" | "MODIFIED":
                self._put(manifest)
            case "DELETED":
                self._remove(manifest)

    def replace(self, items: Iterable[Manifest], version: int) -> None:
        """Take in a list of everything there is at `version`: what is not in it is gone, unless it is younger."""
        listed = {key_of(item): item for item in items}
        for space in list(self._objects.values()):
            for known in list(space.values()):
                if key_of(known) not in listed and version_of(known) <= version:
                    self._drop(known)
        for item in listed.values():
            self._put(item)
        self.version = max(self.version, version)

    def clear(self) -> None:
        """Remove every object: the cluster no longer has the kind."""
        for known in [manifest for space in self._objects.values() for manifest in space.values()]:
            self._drop(known)

    def _put(self, manifest: Manifest) -> None:
        namespace, name = key_of(manifest)
        old = self.get(namespace, name)
        if old is not None and version_of(manifest) <= version_of(old):
            return
        if old is not None and manifest["metadata"].get("uid") != old["metadata"].get("uid"):
            self._drop(old)  # deleted and made again while we were not looking
            old = None
        new = self._prune(manifest)
        if old is not None:
            self._take_out(old)
        for spaces in (self._objects, *(self._by_label.setdefault(label, {}) for label in self._labels(new))):
            spaces.setdefault(namespace, {})[name] = new
        self._on_change("ADDED" if old is None else "MODIFIED", new, old)

    def _remove(self, manifest: Manifest) -> None:
        known = self.get(*key_of(manifest))
        if known is not None and version_of(manifest) >= version_of(known):
            self._drop(known)

    def _drop(self, known: Manifest) -> None:
        self._take_out(known)
        self._on_change("DELETED", known, known)

    def _take_out(self, known: Manifest) -> None:
        _remove(self._objects, known)
        for label in self._labels(known):
            _remove(self._by_label[label], known)
            if not self._by_label[label]:
                del self._by_label[label]

    def _labels(self, manifest: Manifest) -> list[tuple[str, str]]:
        labels = manifest["metadata"].get("labels") or {}
        return [(label, labels[label]) for label in self._indexed if label in labels]


def _remove(spaces: Spaces, known: Manifest) -> None:
    namespace, name = key_of(known)
    del spaces[namespace][name]
    if not spaces[namespace]:
        del spaces[namespace]


def _owners(manifest: Manifest) -> set[str]:
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}
