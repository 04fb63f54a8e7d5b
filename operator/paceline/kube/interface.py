"""The verbs of the API that Paceline uses. `Transport` sends them to a real API server."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from paceline.kube.resources import Manifest, Ref, Resource

PAGE = 50
"""Objects per page of a list."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind at one version of the cluster, reduced by `reduce` if it was given."""

    items: list[Any]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK (which carries only a resourceVersion)."""

    type: str
    object: Manifest


class Api(Protocol):
    """A Kubernetes API. Methods raise only `ApiError` and its subclasses.

    Parts of an object that are too deep or too large to read are omitted; `reading.UNREAD` then marks the object.
    """

    async def get(self, ref: Ref) -> Manifest | None:
        """The object, or None if it is not there."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        selector: str = "",
        limit: int = PAGE,
        fields: str = "",
        reduce: Callable[[Manifest], Any] | None = None,
    ) -> Listing:
        """All objects that match, with labels by `selector` and `fields` such as spec.nodeName=NAME, read in pages of
        at most `limit`. Objects come without managedFields. Raises Gone if reading the pages takes too long.

        `reduce` is called with each object as its page arrives: thousands of whole objects take ten times the memory
        that a store keeps of them, and a process does not return that memory.
        """

    async def log(self, pod: Ref, container: str) -> str:
        """A container's log; only its last bytes if it is long."""

    def watch(
        self, resource: Resource, namespace: str | None = None, selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, in order, until the server ends the watch. Raises Gone if the version is
        too old."""

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = True) -> Manifest:
        """Server-side apply. A `metadata.uid` or `resourceVersion` in it must be the object's, else Conflict."""

    async def create(self, manifest: Manifest) -> Manifest:
        """Create the object. Raises Conflict if the name is taken."""

    async def update(self, manifest: Manifest) -> Manifest:
        """Replace the whole object; Conflict unless `metadata.resourceVersion` is the current one."""

    async def replace_status(self, manifest: Manifest) -> Manifest:
        """Replace the whole status, and nothing else. NotFound if there is no object; Conflict unless a
        `metadata.resourceVersion` is the current one."""

    async def delete(self, ref: Ref, *, uid: str, propagation: str = "Background") -> bool:
        """Delete the object with this uid. False if it does not exist or now has another uid."""
