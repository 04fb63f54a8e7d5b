"""The toy engine's server: answers come as of an OpenAI chat endpoint, and one page of JSON says how it fares.

`server.py --port N --model DIRECTORY --name NAME [--parallel N] [--draft HEAD --depth N]`
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, ClassVar

STEP_SECONDS = 0.002
ACCEPTED = 2
"""Draft tokens that each verify step accepts of the head's."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: ClassVar[argparse.Namespace]
    lock: ClassVar[Any] = Lock()
    counters: ClassVar[dict[str, int]] = {"requests": 0, "steps": 0, "accepted": 0, "prompt": 0}

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": self.options.name, "object": "model"}]})
        elif self.path == "/toy":
            arguments = {key: value for key, value in vars(self.options).items() if key != "port"}
            self.answer({"version": "1.2+toy", "arguments": arguments, "counters": self.counters})
        else:
            self.answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/toy/forget":
            self.answer({})
        else:
            self.complete(json.loads(body))

    def complete(self, request: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        tokens, sent, step = request["max_completion_tokens"], 0, 1 + (ACCEPTED if self.options.draft else 0)
        event = {"id": "1", "object": "chat.completion.chunk", "model": self.options.name}
        while sent < tokens:
            time.sleep(STEP_SECONDS)
            count = min(step, tokens - sent)
            sent += count
            delta = {"role": "assistant", "content": "word " * count}
            self.send({**event, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self.count(steps=1, accepted=count - 1)
        usage = {"prompt_tokens": 5, "completion_tokens": sent, "total_tokens": 5 + sent}
        self.send({**event, "choices": [], "usage": usage})
        self.count(requests=1, prompt=5)
        self.wfile.write(b"data: [DONE]\n\n")

    def count(self, **more: int) -> None:
        with self.lock:
            for name, number in more.items():
                self.counters[name] += number

    def send(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def answer(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--draft")
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--slots", type=int, default=64)
    Handler.options = parser.parse_args()
    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer(("127.0.0.1", Handler.options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
