"""A server that means harm, or is broken in a way that looks like it: the small one of `fake_server`, but for one page.

`python hostile_server.py WAY --page /metrics --port N [--elsewhere URL] [--api-key KEY]`
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer

from tests.unit.round import fake_server

NESTED = 100_000
FLOOD = 300 << 20
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e"


class Handler(fake_server.Handler):
    def do_GET(self) -> None:  # noqa: N802
        if self.path.partition("?")[0] == self.options.page:
            self.close_connection = True
            WAYS[self.options.way](self)
        else:
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802
        if self.path == self.options.page:
            self.do_GET()
        else:
            super().do_POST()

    def raw(self, head: str, body: bytes = b"") -> None:
        self.wfile.write(f"{head}\r\n\r\n".encode() + body)


def garbage(handler: Handler) -> None:
    handler.raw("\x16\x03\x01 what is HTTP")


def nothing(_: Handler) -> None:
    """The connection is closed without a word."""


def truncated(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK\r\nContent-Length: 1000", b"only so much")


def truncated_chunk(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"fff\r\nonly so much")


def a_long_header(handler: Handler) -> None:
    handler.raw(f"HTTP/1.1 200 OK\r\nX-Long: {'x' * 70_000}")


def many_headers(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK\r\n" + "\r\n".join(f"X-{number}: x" for number in range(200)))


def a_redirect(handler: Handler) -> None:
    handler.raw(f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {handler.options.elsewhere}")


def a_flood(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK")
    try:
        for _ in range(FLOOD >> 20):
            handler.wfile.write(b"#" * (1 << 20))
    except OSError:
        pass  # nobody wants more


def a_drip(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK")
    try:
        while True:
            handler.wfile.write(b"#")
            time.sleep(0.05)
    except OSError:
        pass


def no_text(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK", b"\xff\xfe\x80")


def deep(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK", b"[" * NESTED)


def odd(handler: Handler) -> None:
    handler.raw("HTTP/1.1 200 OK", json.dumps({"data": 5, "version": [], "internal_states": 5}).encode())


def its_key(handler: Handler) -> None:
    """As a name that a terminal would obey."""
    name = f"{ESCAPES}{handler.options.api_key}"
    handler.raw("HTTP/1.1 200 OK", json.dumps({"data": [{"id": name}]}).encode())


WAYS: dict[str, Callable[[Handler], None]] = {
    way.__name__: way
    for way in (
        garbage, nothing, truncated, truncated_chunk, a_long_header, many_headers, a_redirect, a_flood, a_drip, no_text,
        deep, odd, its_key,
    )
}  # fmt: skip


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--page", required=True)
    parser.add_argument("--elsewhere", default="")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args(argv, argparse.Namespace(model="pair", length=0, fail_every=0, die_after=0, log="",
                                                         backend="triton", steps=None))  # fmt: skip
    Handler.options = options
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
