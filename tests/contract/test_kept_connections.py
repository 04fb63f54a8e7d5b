"""What becomes of the connections that clients keep when the emulated server is told to end."""

import json
import signal
import socket
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.contract.test_process import CHAT, LONG, in_background
from tests.support.running import PATIENCE, emulated

JSON = {"Content-Type": "application/json"}


def test_on_sigterm_it_keeps_the_connections_that_clients_keep(target: str, log: Path) -> None:
    """So it does not end while they go on asking."""
    with emulated(target, log) as server:
        kept = HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=PATIENCE)
        thread, _ = in_background(server, LONG)
        server.process.terminate()
        for _ in range(2):
            kept.request("POST", "/v1/chat/completions", json.dumps(CHAT), JSON)
            answer = kept.getresponse()
            assert (answer.status, answer.will_close) == (200, False)
            answer.read()
        thread.join()


def test_on_sigint_it_closes_them_as_it_answers(target: str, log: Path) -> None:
    """As uvicorn does: one that waits at once, one that is answered behind its answer, which says so."""
    with emulated(target, log) as server:
        port = int(server.url.rsplit(":", 1)[1])
        waits, asks = (HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(2))
        waits.request("GET", "/v1/models")
        assert waits.getresponse().read()
        asks.request("POST", "/v1/chat/completions", json.dumps(LONG), JSON)
        while server.get("/v1/loads").json["loads"][0]["num_running_reqs"] == 0:
            time.sleep(0.005)
        server.process.send_signal(signal.SIGINT)
        assert waits.sock.recv(1) == b""
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        answer = asks.getresponse()
        assert answer.will_close
        assert json.loads(answer.read())["usage"]["completion_tokens"] == LONG["max_tokens"]
        assert server.process.wait(PATIENCE) == -signal.SIGINT
