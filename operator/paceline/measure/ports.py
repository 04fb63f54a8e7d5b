"""Ports of this machine for servers that run one after another."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"
PORTS = 200
"""How many ports are tried, starting at the engine's own: all below the kernel's range for outgoing connections."""


class NoPortError(OSError):
    """No port is free."""


@contextmanager
def reserved(wanted: int) -> Iterator[int]:
    """The first port from `wanted` on at which nothing listens and that no other `paceline measure` of this machine has
    reserved: between two of its servers its port is unused, too. The reservation is a name in the kernel's abstract
    namespace, which disappears with our process. Raises NoPortError."""
    for port in range(wanted, wanted + PORTS):
        with socket.socket(socket.AF_UNIX) as name:
            try:
                name.bind(f"\0paceline-measure-{port}")
            except OSError:
                continue
            if _is_free(port):
                yield port
                return
    raise NoPortError(f"no port from {wanted} to {wanted + PORTS - 1} of {LOOPBACK} is free: stop what listens there")


def any_free() -> int:
    """A port at which nothing listens now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
