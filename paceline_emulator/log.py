"""Log lines as the real server writes them, to stderr."""

import sys
import time
from http import HTTPStatus

from aiohttp import web


def say(message: str) -> None:
    """One line, with the time in front."""
    sys.stderr.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {message}\n")
    sys.stderr.flush()


def access(request: web.Request, status: int) -> str:
    """uvicorn's line for a request."""
    host, port = ((request.transport and request.transport.get_extra_info("peername")) or ("-", 0))[:2]
    asked = f"{request.method} {request.path_qs} HTTP/1.1"
    return f'INFO:     {host}:{port} - "{asked}" {status} {HTTPStatus(status).phrase}'
