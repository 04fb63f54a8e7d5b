"""HTTP to the arm's server, on localhost without any proxy.

Its answers can only harm its own arm: bodies have a maximum size and the whole exchange a maximum duration, however
slowly the bytes arrive; redirects are not followed, so a key never goes elsewhere.
"""

import io
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Any, cast
from urllib.parse import urlsplit

from paceline.evidence import Failure
from paceline.pods.round.steps import ServerFailed

TIMEOUT_SECONDS = 30.0
_CHAT = "/v1/chat/completions"
LARGEST_BODY = 32 << 20
"""Maximum bytes of a body. The largest requested one: 4096 tokens with five alternatives each, of about 1 KB."""
LONGEST_REFUSAL = 200
PORT_SECONDS = 10.0
"""Time for the last server's sockets to close."""
FLUSH_TRIES = 5
FLUSH_PAUSE_SECONDS = 1.0
NO_ANSWER = (OSError, HTTPException, ValueError, RecursionError)
"""Errors of a failed exchange: no connection, no HTTP, no text, no JSON."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes

    @property
    def refusal(self) -> str:
        return f"HTTP {self.status}: {self.body[:LONGEST_REFUSAL].decode(errors='replace')}"


class PortTakenError(RuntimeError):
    """Another program listens on the server's port: it would be measured instead."""


def wait_for_port(port: int) -> None:
    """Wait until the port is free. Raises PortTakenError."""
    deadline = time.monotonic() + PORT_SECONDS
    while _listens(port):
        if time.monotonic() >= deadline:
            raise PortTakenError(f"another process listens at 127.0.0.1:{port}, the server's port: stop it")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


def is_ready(url: str, path: str, timeout_seconds: float) -> bool:
    try:
        return exchange(url, "GET", path, seconds=timeout_seconds).status == 200
    except NO_ANSWER:
        return False


def get(url: str, path: str, key: str = "") -> str:
    """The body of the answer at this path. Raises ServerFailed."""
    try:
        answer = exchange(url, "GET", path, key)
        if answer.status == 200:
            return answer.body.decode()
    except NO_ANSWER as error:
        raise ServerFailed(f"GET {path}: {_why(error)}") from error
    raise ServerFailed(f"GET {path}: {answer.refusal}")


def flush(url: str, path: str, key: str = "") -> None:
    """Empty the cache. A server that is not idle yet refuses with 400 and is asked again."""
    for last in [False] * (FLUSH_TRIES - 1) + [True]:
        try:
            answer = exchange(url, "POST", path, key, seconds=2 * TIMEOUT_SECONDS)
        except NO_ANSWER as error:
            raise ServerFailed(f"POST {path}: {_why(error)}") from error
        if 200 <= answer.status < 300:
            return
        if last or answer.status != 400:
            raise ServerFailed(f"POST {path}: {answer.refusal}")
        time.sleep(FLUSH_PAUSE_SECONDS)


def ask_server(url: str, body: Mapping[str, Any], key: str, timeout_seconds: float) -> Mapping[str, Any] | str:
    """The complete answer, or why there is none; raises ServerFailed if it does not arrive."""
    try:
        answer = exchange(url, "POST", _CHAT, key, body, seconds=timeout_seconds)
        if answer.status != 200:
            return answer.refusal
        found = json.loads(answer.body)
        return found if isinstance(found, dict) else "the answer is not an object"
    except TimeoutError as error:
        message = f"a prompt of parity timed out after {timeout_seconds:.0f} s"
        raise ServerFailed(message, Failure.TimedOut) from error
    except NO_ANSWER as error:
        return f"POST {_CHAT}: {_why(error)}"


def exchange(
    url: str,
    method: str,
    path: str,
    key: str = "",
    body: Mapping[str, Any] | None = None,
    *,
    seconds: float = TIMEOUT_SECONDS,
) -> Response:
    """One request and its answer, within this many seconds. Raises one of NO_ANSWER."""
    until = time.monotonic() + seconds
    headers = {"Connection": "close", **({"Authorization": f"Bearer {key}"} if key else {})}
    sent = b"" if body is None and method == "POST" else None
    if body is not None:
        headers["Content-Type"], sent = "application/json", json.dumps(body).encode()
    there = urlsplit(url)
    connection = HTTPConnection(there.hostname or "", there.port, timeout=seconds)
    try:
        connection.request(method, path, sent, headers)
        answer = HTTPResponse(cast("socket.socket", _Until(connection.sock, until)), method=method)
        answer.begin()
        found = answer.read(LARGEST_BODY + 1)
        if len(found) > LARGEST_BODY:
            raise ValueError(f"an answer of more than {LARGEST_BODY >> 20} MiB")
        if answer.length:  # with a limit, the library does not report that fewer bytes came
            raise IncompleteRead(found, answer.length)
        return Response(answer.status, found)
    finally:
        connection.close()


class _Until(io.RawIOBase):
    """Reads from a socket up to a deadline: its own timeout restarts with every byte."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._socket, self._until = connection, until

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)
        return self._socket.recv_into(buffer)


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__
