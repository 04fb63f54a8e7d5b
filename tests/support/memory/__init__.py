"""An API server in memory for fault tests.

`Cluster` is the store; `MemoryApi` is what one process of a client sees of it, with hooks for crashes, lost responses,
conflicts and broken watches; `Controllers` is the rest of Kubernetes, one step at a time. tests/conformance holds the
first two to a real kube-apiserver.
"""

from tests.support.memory.api import Crash, MemoryApi, Write, conflict, crash_from, fail_at, lost
from tests.support.memory.cluster import Cluster
from tests.support.memory.controllers import Controllers, Exit

__all__ = ["Cluster", "Controllers", "Crash", "Exit", "MemoryApi", "Write", "conflict", "crash_from", "fail_at", "lost"]
