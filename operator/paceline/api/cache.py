"""Where models are stored."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.api.model import Finding, Model, Rule, Unique
from paceline.api.parts import Env, TokenKey
from paceline.api.words import HostPath, ObjectName, Quantity


class ClaimSpec(Model):
    """A PersistentVolumeClaim to create for the models. It outlives the deployment."""

    name: ObjectName
    """Name of the PersistentVolumeClaim."""
    size: Quantity
    """Storage to request."""
    storage_class_name: ObjectName | None = None
    """Storage class; the cluster's default if absent."""
    access_modes: (
        Annotated[tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...], Field(min_length=1, max_length=2), Unique()]
        | None
    ) = None
    """Access modes; ReadWriteMany if absent. A ReadWriteOnce volume attaches to one node at a time: servers and rounds
    on other nodes wait, unless the volume is itself bound to one node."""


RESERVED = r"^(HOME|PACELINE_.*|LD_.*|PYTHON.*)$"
NOT_FOR_THE_FETCH = (
    "env must not have HOME and PACELINE_, which the prefetch sets, nor LD_ and PYTHON,"
    " which would run other code in it"
)


def _reserved(cache: Any) -> Iterator[Finding]:
    for i, variable in enumerate(cache.env):
        if re.fullmatch(RESERVED, variable.name):
            yield f".env[{i}].name", f"{NOT_FOR_THE_FETCH}; got {variable.name}"


NO_CODE_OF_OTHERS = Rule(
    cel=f"!has(self.env) || self.env.all(e, !e.name.matches('{RESERVED}'))",
    message=NOT_FOR_THE_FETCH,
    field=".env",
    broken=_reserved,
)
"""The prefetch runs our image with the hub's token: its code is ours."""


def _which_cache(cache: "CacheSpec") -> Iterator[Finding]:
    if (cache.claim, cache.existing_claim, cache.host_path).count(None) != 2:
        yield "", "exactly one of claim, existingClaim and hostPath must be set"


Id = Annotated[int, Field(ge=1, le=2_147_483_647)]


class CacheSecurity(Model):
    """User and groups of the prefetch. Drivers of shared volumes often ignore fsGroup (their CSIDriver lacks
    fsGroupPolicy: File), so that the volume keeps its own owner."""

    run_as_user: Id | None = None
    """User id; 65532 if absent, never root."""
    run_as_group: Id | None = None
    """Group id of the volume; 65532 if absent."""
    fs_group: Id | None = None
    """Group id of the volume; 65532 if absent."""
    supplemental_groups: Annotated[tuple[Id, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Supplemental group ids."""


class CacheSpec(Model):
    """Where models are stored."""

    rules = (
        Rule(
            cel="[has(self.claim), has(self.existingClaim), has(self.hostPath)].filter(x, x).size() == 1",
            message="exactly one of claim, existingClaim and hostPath must be set",
            broken=_which_cache,
        ),
        NO_CODE_OF_OTHERS,
    )

    claim: ClaimSpec | None = None
    """A PersistentVolumeClaim to create."""
    existing_claim: ObjectName | None = None
    """An existing PersistentVolumeClaim."""
    host_path: HostPath | None = None
    """An existing directory, writable by uid 65532 and shared by all nodes that serve."""
    env: Env = ()
    """Environment of the prefetch only: HF_ENDPOINT, proxies, a CA."""
    token_secret_ref: TokenKey | None = None
    """Hub token for gated repositories; the operator never reads it."""
    security_context: CacheSecurity | None = None
    """User and groups of the prefetch, for volumes that uid 65532 cannot write."""
    keep_revisions: Annotated[int, Field(ge=1, le=50)] | None = None
    """Number of unused revisions of a model to keep on the volume; 2 if absent."""
