"""Where models are kept."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from paceline.api.model import Finding, Model, Rule, Unique
from paceline.api.parts import Env, TokenKey
from paceline.api.words import HostPath, ObjectName, Quantity


class ClaimSpec(Model):
    """A claim to make for the models. It outlives the deployment."""

    name: ObjectName
    """Name of the PersistentVolumeClaim."""
    size: Quantity
    """How much it asks for."""
    storage_class_name: ObjectName | None = None
    """The cluster's default class if absent."""
    access_modes: (
        Annotated[tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...], Field(min_length=1, max_length=2), Unique()]
        | None
    ) = None
    """ReadWriteMany if absent; ReadWriteOnce keeps all servers on one node."""


def _which_cache(cache: "CacheSpec") -> Iterator[Finding]:
    if (cache.claim, cache.existing_claim, cache.host_path).count(None) != 2:
        yield "", "exactly one of claim, existingClaim and hostPath must be set"


class CacheSpec(Model):
    """Where models are kept."""

    rules = (
        Rule(
            cel="[has(self.claim), has(self.existingClaim), has(self.hostPath)].filter(x, x).size() == 1",
            message="exactly one of claim, existingClaim and hostPath must be set",
            broken=_which_cache,
        ),
    )

    claim: ClaimSpec | None = None
    """A PersistentVolumeClaim to make."""
    existing_claim: ObjectName | None = None
    """A PersistentVolumeClaim that is there already."""
    host_path: HostPath | None = None
    """A directory that is there, writable by uid 65532, and shared by all nodes that serve."""
    env: Env = ()
    """Environment of the prefetch alone: HF_ENDPOINT, proxies, a CA."""
    token_secret_ref: TokenKey | None = None
    """The hub's token, for gated repositories; the operator never reads it."""
    keep_revisions: Annotated[int, Field(ge=1, le=50)] | None = None
    """How many revisions of a model stay on the volume besides those in use; 2 if absent."""
