"""Cluster plumbing; knows nothing of Paceline.

`connect()` gives a `Transport`, which implements the verbs of `Api` with plain dicts, for objects of any size and depth
(`UNREAD`); `names_only` makes another client receive only the names of objects. A `Reflector` keeps a `Store` in sync
with the objects of one kind and reports changes; a `WorkQueue` merges the changes of a key into one call of a reconcile
function. `needs_apply` tells whether an apply would change anything. A `Lease` elects the leader, `leading` renews it
on a separate thread, a `Recorder` writes Events, and an `Outbox` writes them in the background. A `Contact` knows
whether the server answers at all.
"""

from paceline.kube.contact import Contact, ask_anew
from paceline.kube.difference import APPLIED, difference, needs_apply, needs_status, stamped
from paceline.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from paceline.kube.events import Outbox, Recorder
from paceline.kube.interface import Api, Listing, WatchEvent
from paceline.kube.leading import Leading, leading
from paceline.kube.lease import Lease
from paceline.kube.names import names_only
from paceline.kube.queue import WorkQueue
from paceline.kube.reading import UNREAD
from paceline.kube.reflector import Reflector
from paceline.kube.resources import KINDS, Kinds, Manifest, Ref, Resource, kinds, ref_of, selector
from paceline.kube.store import Store
from paceline.kube.throttle import Throttle
from paceline.kube.transport import Transport, connect

__all__ = [
    "APPLIED",
    "KINDS",
    "UNREAD",
    "Api",
    "ApiError",
    "Conflict",
    "Contact",
    "Forbidden",
    "Gone",
    "Invalid",
    "Kinds",
    "Leading",
    "Lease",
    "Listing",
    "Manifest",
    "NotFound",
    "Outbox",
    "Recorder",
    "Ref",
    "Reflector",
    "Resource",
    "Store",
    "Throttle",
    "TooManyRequests",
    "Transport",
    "Unavailable",
    "WatchEvent",
    "WorkQueue",
    "ask_anew",
    "connect",
    "difference",
    "kinds",
    "leading",
    "names_only",
    "needs_apply",
    "needs_status",
    "ref_of",
    "selector",
    "stamped",
]
