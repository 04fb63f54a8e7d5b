"""Where models are stored."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from paceline.api.model import SchemaModel
from paceline.api.pod import Env, TokenKey
from paceline.api.rules import Rule, one_of
from paceline.core import ClaimTemplate
from paceline.core.types import HostPath, ObjectName, Unique

_SAME_CLAIM = "has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)"


def _kept(field: str) -> Rule:
    """Kubernetes changes nothing but the size of a claim that is bound."""
    same = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    return Rule(
        cel=f"!({_SAME_CLAIM}) || ({same})",
        message=f"{field} cannot be changed on a claim that exists: write another name",
        field=f".{field}",
    )


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    ClaimTemplate: (
        _kept("storageClassName"),
        _kept("accessModes"),
        Rule(
            cel=f"!({_SAME_CLAIM}) || quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            message="size cannot become smaller on a claim that exists: write another name",
            field=".size",
        ),
    ),
}

_RESERVED = r"^(HOME|PACELINE_.*|LD_.*|PYTHON.*)$"
NOT_FOR_THE_FETCH = (
    "env must not have HOME and PACELINE_, which the prefetch sets, nor LD_ and PYTHON,"
    " which could make it run other code"
)


NO_CODE_OF_OTHERS = Rule(
    each={"e": "self.env"},
    cel=f"!e.name.matches('{_RESERVED}')",
    message=f"{NOT_FOR_THE_FETCH}; got {{e.name}}",
    field=".name",
)
"""The prefetch runs our image with the hub's token: its code is ours."""


def on_the_claim(source: str, claim: str, field: str, **each: str) -> Rule:
    """A model on a volume must be on the mounted volume. `source` is a path in CEL whose fields may be absent; `claim`
    is CEL, empty if the cache has no claim."""
    names = source.split(".")
    absent = [f"!has({'.'.join(names[:i])})" for i in range(2, len(names) + 1)]
    return Rule(
        each=each,
        cel=" || ".join((*absent, f"!{source}.startsWith('pvc://')", f"{source}.startsWith('pvc://' + {claim} + '/')")),
        message="source pvc://CLAIM/PATH must name the cache's own claim, the only volume that is mounted; a "
        "cache with hostPath has no claim: use claimName or claim, with its name written out; got "
        f"{{{source}}}",
        field=field,
    )


Id = Annotated[int, Field(ge=1, le=2_147_483_647)]


class CacheSecurity(SchemaModel):
    """User and groups of the prefetch. Drivers of shared volumes often ignore fsGroup (their CSIDriver lacks
    fsGroupPolicy: File); the volume then keeps its owner."""

    run_as_user: Id | None = None
    """User id; 65532 if absent, never root."""
    run_as_group: Id | None = None
    """Group id of the process; 65532 if absent."""
    fs_group: Id | None = None
    """Group id of the volume; 65532 if absent."""
    supplemental_groups: Annotated[tuple[Id, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Supplemental group ids."""


class CacheSpec(SchemaModel):
    """Where models are stored."""

    rules = (
        one_of("claim", "claimName", "hostPath"),
        NO_CODE_OF_OTHERS,
    )

    claim: ClaimTemplate | None = None
    """A PersistentVolumeClaim to create."""
    claim_name: ObjectName | None = None
    """An existing PersistentVolumeClaim."""
    host_path: HostPath | None = None
    """An existing directory, writable by uid 65532 and shared by all nodes that serve."""
    env: Env = ()
    """Environment of the prefetch only: HF_ENDPOINT, credentials of buckets, proxies, a CA."""
    token_secret_ref: TokenKey | None = None
    """Hub token for gated repositories; the operator never reads it."""
    security_context: CacheSecurity | None = None
    """User and groups of the prefetch, for volumes that uid 65532 cannot write."""
    keep_revisions: Annotated[int, Field(ge=1, le=50)] = 2
    """Number of unused revisions of a model to keep on the volume."""
