"""Cluster plumbing; knows nothing of Paceline.

`connect()` gives a `Transport`, which speaks the verbs of `Api` with plain dicts. A `Reflector` keeps a `Store` equal
to the objects of one kind and says what changed; a `WorkQueue` turns such changes into one call of a reconcile function
a key. `needs_apply` tells whether an apply would change anything. A `Lease` decides who works, a `Recorder` tells
people.
"""

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
from paceline.kube.events import Recorder
from paceline.kube.interface import Api, Listing, WatchEvent
from paceline.kube.lease import Lease
from paceline.kube.queue import WorkQueue
from paceline.kube.reflector import Reflector
from paceline.kube.resources import KINDS, Kinds, Manifest, Ref, Resource, kinds, ref_of, selector
from paceline.kube.store import Store
from paceline.kube.transport import Transport, connect

__all__ = [
    "APPLIED",
    "KINDS",
    "Api",
    "ApiError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "Kinds",
    "Lease",
    "Listing",
    "Manifest",
    "NotFound",
    "Recorder",
    "Ref",
    "Reflector",
    "Resource",
    "Store",
    "TooManyRequests",
    "Transport",
    "Unavailable",
    "WatchEvent",
    "WorkQueue",
    "connect",
    "difference",
    "kinds",
    "needs_apply",
    "needs_status",
    "ref_of",
    "selector",
    "stamped",
]
