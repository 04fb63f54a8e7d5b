"""A server's keys: named by Secret, filled into its command where it is started, and nowhere else.

Argv and environment hold only their names. The kubelet fills them in where a server serves, in a round the shell that
starts the server (`pods.round.control`); the client has the same variables and sends them along.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import SecretKey, Server

API_KEY = "PACELINE_API_KEY"
ADMIN_KEY = "PACELINE_ADMIN_KEY"
"""Environment variables of the server's and the client's containers."""
FLAGS = ("--api-key", "--admin-api-key")
"""Behind which, and nowhere else, a key is filled in."""


def argv(server: Server) -> tuple[str, ...]:
    """The keys as the kubelet fills them in."""
    return tuple(word for flag, name, _ in _keys(server) for word in (flag, f"$({name})"))


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}
        for _, name, secret in _keys(server)
    )


def _keys(server: Server) -> Iterator[tuple[str, str, SecretKey]]:
    if server.engine.api_key:
        yield FLAGS[0], API_KEY, server.engine.api_key
    if server.engine.admin_key:
        yield FLAGS[1], ADMIN_KEY, server.engine.admin_key
