"""An emulated vLLM that runs, and what tests ask it over loopback."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.engines import probe as pages

PATIENCE = 20.0
EAGLE3 = {"method": "eagle3", "model": "HEAD", "num_speculative_tokens": 4}


@dataclass(frozen=True)
class Vllm:
    process: "subprocess.Popen[str]"
    url: str

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def ready(self) -> "Vllm":
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if self.ask("/health")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError("not ready")

    def chat(self, text: str = "hello", **more: Any) -> tuple[int, str]:
        body = {"model": "pair", "messages": [{"role": "user", "content": text}], "max_tokens": 24, **more}
        return self.ask("/v1/chat/completions", body)

    def samples(self) -> list[Any]:
        return list(pages.samples(self.ask("/metrics")[1]))

    def total(self, name: str) -> float:
        return sum(sample.value for sample in self.samples() if sample.name == name)


Serve = Callable[..., Vllm]
