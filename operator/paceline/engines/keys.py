"""A server's keys come from Secrets and are filled into its command only at its start.

Argv and environment hold only their names. The kubelet fills them in for a serving pod; in a round the shell that
starts the server does (`pods.round.control`). The client has the same variables and sends the keys with its requests.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import SecretKey, Server
from paceline.engines.pod_template import SERVER

API_KEY = "PACELINE_API_KEY"
ADMIN_KEY = "PACELINE_ADMIN_KEY"
"""Environment variables of the server's and the client's containers."""
HIDE = "PACELINE_HIDE_"
"""Prefix of the client's variables with the server's secrets, which the client hides."""
FLAGS = ("--api-key", "--admin-api-key")
"""A key is filled in only after these flags."""


def argv(server: Server) -> tuple[str, ...]:
    """The keys' flags, with references that the kubelet fills in."""
    return tuple(word for flag, name, _ in _keys(server) for word in (flag, f"$({name})"))


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}
        for _, name, secret in _keys(server)
    )


def to_hide(*servers: Server) -> tuple[Mapping[str, Any], ...]:
    """The client's variables for the servers' secrets from engine.env and podTemplate. A variable with another secret
    on a later server has that server's number behind its name."""
    secrets = dict[str, Any]()
    for number, server in enumerate(servers):
        said = {str(one["name"]): one for one in (*_template(server, "env"), *server.engine.env)}
        for name, one in said.items():
            if _is_secret(one) and secrets.get(name) != (secret := one["valueFrom"]["secretKeyRef"]):
                while name in secrets:
                    name = f"{name}_{number}"
                secrets[name] = secret
    return tuple(
        # The server's container reports missing keys.
        {"name": f"{HIDE}{name}", "valueFrom": {"secretKeyRef": {**secret, "optional": True}}}
        for name, secret in secrets.items()
    )


def all_to_hide(server: Server) -> tuple[Mapping[str, Any], ...]:
    """The same for entire Secrets, for the client's `envFrom`."""
    whole = [one for one in _template(server, "envFrom") if "secretRef" in one]
    return tuple(
        {"prefix": f"{HIDE}{number}_", "secretRef": {**one["secretRef"], "optional": True}}
        for number, one in enumerate(whole)
    )


def _template(server: Server, field: str) -> Iterator[Mapping[str, Any]]:
    """Entries of a list in the pod template's server container."""
    for container in server.engine.pod_template.get("spec", {}).get("containers", ()):
        if container.get("name") == SERVER:
            yield from container.get(field, ())


def _is_secret(variable: Mapping[str, Any]) -> bool:
    return "secretKeyRef" in (variable.get("valueFrom") or {})


def _keys(server: Server) -> Iterator[tuple[str, str, SecretKey]]:
    if server.engine.api_key:
        yield FLAGS[0], API_KEY, server.engine.api_key
    if server.engine.admin_key:
        yield FLAGS[1], ADMIN_KEY, server.engine.admin_key
