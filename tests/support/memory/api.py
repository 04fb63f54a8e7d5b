"""One client's view of a `Cluster`, and everything that can go wrong between the two."""

import asyncio
import copy
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tests.support.memory.cluster import Change, Cluster
from tests.support.memory.selector import selects

from paceline.kube import (
    ApiError,
    Conflict,
    Gone,
    Listing,
    Manifest,
    NotFound,
    Ref,
    Resource,
    Unavailable,
    WatchEvent,
    ref_of,
)

Verb = Literal["apply", "status", "create", "update", "delete"]
Written = TypeVar("Written")


class Crash(BaseException):
    """The process is dead: nothing may catch this, and nothing it does afterwards reaches the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """`number` counts the writes that a client tries, from 1."""

    number: int
    verb: Verb
    ref: Ref
    manifest: Manifest | None


Hook = Callable[[Write], Awaitable[None] | None]
"""Called around a write, and awaited where it takes time. What it raises is the client's answer."""


class MemoryApi:
    """`Api` on a cluster in memory. One object is one process of a client: after a Crash, make another.

    `before` runs before a write reaches the cluster, `after` when it changed something and the client does not know;
    `deliver` turns a watch event into what arrives of it: nothing, itself, or itself twice.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        before: Hook = lambda write: None,
        after: Hook = lambda write: None,
        deliver: Callable[[WatchEvent], Iterable[WatchEvent]] = lambda event: (event,),
    ) -> None:
        self.cluster = cluster
        self.before = before
        self.after = after
        self.deliver = deliver
        self.attempts = 0
        self.writes: list[Write] = []
        """Those that changed something."""
        self.watches = 0
        """How many are open."""
        self.dead = False
        self.behind = 0
        """How many versions ago what is listed was so: an API server's cache that lags."""
        self._seen: int | None = None
        self._connections = 0
        self._expired = -1

    def freeze(self) -> None:
        """From now on this client reads and watches the cluster as it is now; its writes go to the real one."""
        self._seen = self.cluster.version

    def thaw(self) -> None:
        self._seen = None
        self.cluster.bookmark()

    def disconnect(self) -> None:
        """End all open watches of this client."""
        self._connections += 1
        self.cluster.bookmark()

    def expire(self) -> None:
        """End all open watches of this client with Gone: it must list."""
        self._expired = self._connections
        self.disconnect()

    async def get(self, ref: Ref) -> Manifest | None:
        await self._alive()
        return self.cluster.get(ref, self._seen)

    async def log(self, pod: Ref, container: str) -> str:
        """Of a round's client."""
        await self._alive()
        assert container == "client"
        if self.cluster.get(pod, self._seen) is None:
            raise NotFound(404, "NotFound", f"pods {pod.name} not found")
        return self.cluster.logs.get((pod.namespace or "", pod.name), "")

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        selector: str = "",
        limit: int = 500,
        fields: str = "",
        reduce: Callable[[Manifest], Any] | None = None,
    ) -> Listing:
        await self._alive()
        at = max(self.cluster.oldest, self.cluster.version - self.behind) if self.behind else self._seen
        listing = self.cluster.list(resource, namespace, selector, at, fields)
        return listing if reduce is None else replace(listing, items=list(map(reduce, listing.items)))

    async def watch(
        self, resource: Resource, namespace: str | None = None, selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        await self._alive()
        self.cluster.served(resource)
        position = int(resource_version or self.cluster.version)
        matching = selects(selector)
        connection, bookmarks = self._connections, self.cluster.bookmarks
        self.watches += 1
        try:
            while connection == self._connections:
                now = self.cluster.version if self._seen is None else self._seen
                for change in [c for c in self.cluster.since(min(position, self.cluster.version)) if c.version <= now]:
                    position = max(position, change.version)
                    if change.ref.resource == resource and namespace in (None, change.ref.namespace):
                        for event in _event(change, matching):
                            for arriving in self.deliver(event):
                                yield arriving
                if bookmarks != self.cluster.bookmarks:
                    bookmarks, position = self.cluster.bookmarks, max(position, now)
                    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
                    yield WatchEvent("BOOKMARK", kind | {"metadata": {"resourceVersion": str(position)}})
                elif self.cluster.version <= now or self._seen is not None:
                    await self.cluster.changed()
                await self._alive()
            if connection <= self._expired:
                raise Gone(410, "Expired", "injected: too old resource version")
        finally:
            self.watches -= 1

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = True) -> Manifest:
        ref = ref_of(manifest, self.cluster.kinds)
        return await self._write(
            "apply", ref, manifest, lambda: self.cluster.apply(manifest, manager=manager, force=force)
        )

    async def create(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest, self.cluster.kinds)
        return await self._write("create", ref, manifest, lambda: self.cluster.create(manifest))

    async def update(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest, self.cluster.kinds)
        return await self._write("update", ref, manifest, lambda: self.cluster.update(manifest))

    async def replace_status(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest, self.cluster.kinds)
        return await self._write("status", ref, manifest, lambda: self.cluster.replace_status(manifest))

    async def delete(self, ref: Ref, *, uid: str, propagation: str = "Background") -> bool:
        try:
            return await self._write(
                "delete", ref, None, lambda: self.cluster.delete(ref, uid=uid, propagation=propagation)
            )
        except Conflict:  # as Transport does
            return False

    async def _alive(self) -> None:
        """Any request takes a moment, in which others run; the dead get no answer."""
        await asyncio.sleep(0)
        if self.dead:
            raise Crash

    async def _write(self, verb: Verb, ref: Ref, manifest: Manifest | None, do: Callable[[], Written]) -> Written:
        await self._alive()
        self.attempts += 1
        write = Write(number=self.attempts, verb=verb, ref=ref, manifest=copy.deepcopy(manifest))
        await self._run(self.before, write)
        version = self.cluster.version
        answer = do()
        if self.cluster.version != version:
            self.writes.append(write)
            await self._run(self.after, write)
        return answer

    async def _run(self, hook: Hook, write: Write) -> None:
        try:
            if inspect.isawaitable(takes_time := hook(write)):
                await takes_time
        except Crash:
            self.dead = True
            raise


def fail_at(number: int, error: BaseException) -> Hook:
    """That write gets this answer."""

    def hook(write: Write) -> None:
        if write.number == number:
            raise error

    return hook


def crash_from(number: int) -> Hook:
    """The first write that gets here with this number or a higher one is the last thing the process does."""

    def hook(write: Write) -> None:
        if write.number >= number:
            raise Crash

    return hook


def conflict() -> ApiError:
    return Conflict(409, "Conflict", "injected: the object has been modified")


def lost() -> ApiError:
    """As `before`: the request never arrived. As `after`: it did, and the response was lost."""
    return Unavailable(0, "ServerDisconnectedError", "injected: the connection was lost")


def _event(change: Change, matching: Callable[[Manifest], bool]) -> Iterable[WatchEvent]:
    """What a watch with a selector tells of a change: an object that stops to match is DELETED, as it last matched."""
    before = change.old if change.old is not None and matching(change.old) else None
    after = change.new if change.new is not None and matching(change.new) else None
    if after is not None:
        yield WatchEvent("ADDED" if before is None else "MODIFIED", copy.deepcopy(after))
    elif before is not None:
        last = copy.deepcopy(before)
        last["metadata"]["resourceVersion"] = str(change.version)
        yield WatchEvent("DELETED", last)
