"""How requests from outside reach the pools."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A Gateway (gateway.networking.k8s.io) and the header by which its routes tell pools apart."""

    name: str
    namespace: str | None = None
    section_name: str | None = None
    hostnames: tuple[str, ...] | None = None
    header: str = "x-paceline-pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPicker:
    """The Service that an InferencePool asks which server takes a request."""

    name: str
    port: int = 9002
    failure_mode: str = "FailClose"
