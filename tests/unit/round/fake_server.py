"""A small server that speaks as much of SGLang as a round needs, with faults on request. Real sockets, real streams.

`python fake_server.py --port N [--model NAME] [--steps N] [--length L] [--delay S] [--fail-every N] [--die-after N]
[--exit N] [--ignore-term] [--log FILE]`: `--length` is the acceptance length (0: no speculation), `--log` takes every
request's last user message and body as a line of JSON, in the order of arrival.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

TOKEN_SECONDS = 0.002


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: ClassVar[argparse.Namespace]
    lock: ClassVar[Any] = threading.Lock()
    requests: ClassVar[int] = 0
    verify_calls: ClassVar[float] = 0
    since_flush: ClassVar[float] = 0
    busy: ClassVar[int] = 0

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": self.options.model, "object": "model"}]})
        elif path == "/server_info":
            self.answer(self.server_info())
        elif path == "/metrics":
            name = self.options.model
            self.answer(
                f'sglang:spec_verify_calls_total{{model_name="{name}"}} {self.verify_calls}\n'
                if self.options.length
                else f'sglang:num_requests_total{{model_name="{name}"}} {self.requests}\n'
            )
        else:
            self.answer("ok")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/flush_cache"):
            type(self).since_flush = 0
            self.answer("flushed", 400 if self.busy else 200)
        else:
            self.complete(json.loads(body))

    def complete(self, request: dict[str, Any]) -> None:
        if not request.get("stream"):  # a sample: nothing is told of its drafts
            self.answer({"choices": []})
            return
        with self.lock:
            Handler.requests += 1
            Handler.busy += 1
            number = Handler.requests
            if self.options.log:
                with open(self.options.log, "a") as log:  # noqa: PTH123
                    log.write(json.dumps([request["messages"][-1]["content"], request]) + "\n")
        try:
            if self.options.die_after and number > self.options.die_after:
                print("RuntimeError: CUDA error: an illegal memory access was encountered", flush=True)
                os._exit(1)
            if self.options.fail_every and number % self.options.fail_every == 0:
                self.answer({"error": "the server is on strike"}, 500)
                return
            self.stream(request)
        finally:
            with self.lock:
                Handler.busy -= 1

    def stream(self, request: dict[str, Any]) -> None:
        tokens, step = request["max_completion_tokens"], max(self.options.length, 1)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        sent, base = 0.0, {"id": "1", "object": "chat.completion.chunk", "model": self.options.model}
        while sent < tokens:
            time.sleep(TOKEN_SECONDS)
            count = int(min(sent + step, tokens)) - int(sent)
            sent += step
            choice = {"index": 0, "delta": {"role": "assistant", "content": "word " * count}, "finish_reason": None}
            self.chunk({**base, "choices": [choice]})
            with self.lock:
                if self.options.length:
                    Handler.verify_calls += 1
                    Handler.since_flush += 1
        usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": tokens + 5}
        self.chunk({**base, "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def server_info(self) -> dict[str, Any]:
        state = {"avg_spec_accept_length": self.options.length} if self.options.length and self.since_flush else {}
        return {
            "version": "0.5.23+fake",
            "attention_backend": self.options.backend,
            "speculative_num_steps": self.options.steps,
            "api_key": "sk-not-to-be-seen",
            "internal_states": [state],
        }

    def answer(self, content: Any, status: int = 200) -> None:
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="pair")
    parser.add_argument("--backend", default="triton")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--length", type=float, default=0)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--fail-every", type=int, default=0)
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--exit", type=int)
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--log")
    options = parser.parse_args()
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(options.delay)
    if options.exit is not None:
        print("ValueError: the draft head does not fit the target", file=sys.stderr, flush=True)
        sys.exit(options.exit)
    Handler.options = options
    ThreadingHTTPServer.request_queue_size = 64
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print("The server is fired up and ready to roll!", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
