"""A revision: the hash of the inputs that shape a server process, and the rendering that is pinned to it."""

from dataclasses import replace

from paceline.core import Arm, Server, server_of
from paceline.core.canonical import digest, without_defaults
from paceline.core.kept import by_identity
from paceline.core.manifest import Manifest
from paceline.core.names import child_name
from paceline.engines import ENGINES
from paceline.render.common import Owner, metadata
from paceline.render.serving import REVISION_LABEL, labels


@by_identity(64)
def revision_of(server: Server, arm: Arm) -> str:
    """Ten hex digits. Values equal to their default are left out, so that new fields change no revision. The load
    counts only through its effects on the server, so that a different load restarts a server only if needed; the price
    of accelerators does not count."""
    server = server_of(server, arm)
    inputs = {
        "server": without_defaults(replace(server, max_concurrency=1, accelerator=server.accelerator.unpriced)),
        "running_requests": ENGINES[server.engine.type].running_requests(server),
        "draft": without_defaults(arm.draft),
        "tree": without_defaults(arm.tree),
        "args": list(arm.args),
    }
    others = {
        "block_size": arm.block_size,
        "ngram": without_defaults(arm.ngram),
        "adaptive": without_defaults(arm.adaptive),
        "depthByBatchSize": [without_defaults(depth) for depth in arm.depth_by_batch_size] or None,
        "custom": without_defaults(arm.custom),
    }
    return digest({**inputs, **{name: value for name, value in others.items() if value is not None}})


def controller_revision(owner: Owner, pool: str, revision: str, rendering: Manifest) -> Manifest:
    """Keeps the result of `serving.rendering`: a new release continues to serve it until the pool's inputs change."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata(
            child_name(owner.name, pool, revision), owner, {**labels(owner, pool), REVISION_LABEL: revision}
        ),
        "revision": 1,
        "data": rendering,
    }
