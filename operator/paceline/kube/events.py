"""Events for people: what happened to an object; repeats are counted."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from paceline.kube.errors import ApiError, Conflict
from paceline.kube.interface import Api
from paceline.kube.resources import EVENT, Manifest, Ref

log = logging.getLogger(__name__)

Kind = Literal["Normal", "Warning"]

LONGEST_NOTE = 1024
"""Maximum bytes of a note; the API server refuses more."""

NAME_LENGTH = 253
"""Maximum length of an Event's name."""


MOST_WAITING = 1000
"""Maximum number of Events waiting to be written; further ones are only logged."""


class Recorder:
    """Writes core Events: `kubectl describe` orders by their timestamps, which those of events.k8s.io may lack.

    The name is a hash of the content, so that a repeat, even by another process after a crash, is found and counted.
    The API server forgets an Event an hour after its last repeat.
    """

    def __init__(
        self,
        api: Api,
        *,
        controller: str,
        instance: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._controller = controller
        self._instance = instance
        self._now = now

    async def record(
        self,
        regarding: Mapping[str, Any],
        type: Kind,
        reason: str,
        note: str,
        *,
        action: str | None = None,
    ) -> None:
        """Record the event about `regarding`. Never fails: errors are logged."""
        event = self._event(regarding, type, reason, shortened(note), action or reason)
        try:
            await self._write(event)
        except ApiError as error:
            log.warning("event %s about %s not written: %s", reason, event["involvedObject"]["name"], error)

    async def _write(self, event: Manifest) -> None:
        try:
            await self._api.create(event)
        except Conflict:  # recorded before: count it
            ref = Ref(EVENT, event["metadata"]["namespace"], event["metadata"]["name"])
            known = await self._api.get(ref)
            if known is not None:
                repeated = {"count": known.get("count", 1) + 1, "lastTimestamp": event["lastTimestamp"]}
                await self._api.update(known | repeated)

    def _event(self, regarding: Mapping[str, Any], type: str, reason: str, note: str, action: str) -> Manifest:
        metadata = regarding["metadata"]
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        identity = "\n".join((metadata["uid"], type, reason, note))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "namespace": metadata.get("namespace") or "default",
                "name": f"{metadata['name'][: NAME_LENGTH - 17]}.{digest}",
            },
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type,
            "reason": reason,
            "action": action,
            "message": note,
            "source": {"component": self._controller},
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
            "involvedObject": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace"),
                "uid": metadata["uid"],
            },
        }


class Outbox:
    """Writes Events in the background, in order of arrival, so that callers never wait. Events still waiting when the
    process ends are lost, but a status has the same facts."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waiting: asyncio.Queue[tuple[Mapping[str, Any], Kind, str, str]] = asyncio.Queue(MOST_WAITING)

    def put(self, regarding: Mapping[str, Any], type: Kind, reason: str, note: str) -> None:
        about = {key: regarding[key] for key in ("apiVersion", "kind", "metadata")}
        try:
            self._waiting.put_nowait((about, type, reason, note))
        except asyncio.QueueFull:
            log.warning("event %s about %s not written: %d wait already", reason, _name(about), MOST_WAITING)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._recorder.record(*await self._waiting.get())


def _name(regarding: Mapping[str, Any]) -> str:
    return str(regarding["metadata"]["name"])


def shortened(note: str) -> str:
    """At most 1024 bytes, cut between characters."""
    if len(note.encode()) <= LONGEST_NOTE:
        return note
    return note.encode()[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
