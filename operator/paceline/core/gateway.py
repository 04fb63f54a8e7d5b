"""How requests from outside reach the pools: routes of the Gateway API, and InferencePools."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from paceline.core.model import model
from paceline.core.types import Matches, ObjectName, Unique

Hostname = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "be a host name such as models.example.com"),
]
HeaderName = Annotated[
    str, Field(max_length=256), Matches(r"^[A-Za-z0-9][-A-Za-z0-9_]*$", "be the name of an HTTP header such as x-pool")
]
HeaderValue = Annotated[
    str, Field(max_length=200), Matches(r"^[!-~]+$", "be the value of an HTTP header, without spaces")
]
SectionName = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "be the name of a listener: lower-case letters, digits, '-' and '.'"),
]
Port = Annotated[int, Field(ge=1, le=65535)]


@model
class ParentReference:
    """A Gateway, as a route of the Gateway API names it."""

    name: ObjectName
    """Name of the Gateway."""
    namespace: ObjectName | None = None
    """Its namespace; this resource's if absent."""
    section_name: SectionName | None = None
    """One of its listeners; all that admit the route if absent."""


@model
class Gateway:
    """Gateways that lead to the pools: each pool gets an HTTPRoute, selected by a header."""

    parent_refs: Annotated[tuple[ParentReference, ...], Field(min_length=1, max_length=8)]
    """The Gateways."""
    hostnames: Annotated[tuple[Hostname, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Host names of the routes; the listeners' host names if absent."""
    header: HeaderName = "x-paceline-pool"
    """The header that names the pool. X-Gateway-Model-Name has the model's name: inference gateways set it from the
    body."""


@model
class PickerPort:
    """A port of the Service."""

    number: Port
    """Its number."""


@model
class EndpointPickerReference:
    """The Service that chooses a server for each request, as an InferencePool names it."""

    name: ObjectName
    """Name of the Service, in the same namespace. Paceline does not run it."""
    port: PickerPort = field(default_factory=lambda: PickerPort(number=9002))
    """Its port; 9002 if absent."""
    failure_mode: Literal["FailOpen", "FailClose"] = "FailClose"
    """What a gateway does if it does not answer: FailOpen sends requests to any server, FailClose refuses them."""
