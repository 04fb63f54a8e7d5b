"""A server that tells its secrets wherever a server speaks: the small one of `fake_server`, with SGLang's arguments.

Each arm tells them in another place, by the length of its chain (--speculative-num-steps). Those that a client can know
come from our arguments and environment; UNKNOWN are only in what we say.
"""

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from http.server import ThreadingHTTPServer
from typing import Any

from tests.unit.round import fake_server

from paceline.engines.sglang.arguments import COMPARED

UNKNOWN = {
    "hf": "hf_CanaryOfAnotherTenant0123456789",
    "password": "canary-behind-a-word",
    "bearer": "canary-of-a-bearer-0123",
    "url": "canary-in-an-address",
}
TELLS = (
    f"{UNKNOWN['hf']} db_password='{UNKNOWN['password']}' Authorization: Bearer {UNKNOWN['bearer']} "
    f"https://user:{UNKNOWN['url']}@registry.example.com/x"
)
NO_DRAFT = {f"speculative_{name}": None for name in ("algorithm", "num_steps", "eagle_topk", "num_draft_tokens")}
CUT = 200
"""Bytes of a refusal that a round repeats."""


class Handler(fake_server.Handler):
    secrets: tuple[str, ...] = ()

    def server_info(self) -> dict[str, Any]:
        told = {"env": dict(os.environ), "tells": TELLS, "attention_backend": f"triton {self.secrets[3]}"}
        return super().server_info() | dict.fromkeys(COMPARED, "auto") | NO_DRAFT | resolved(sys.argv[1:]) | told

    def do_GET(self) -> None:  # noqa: N802
        PLACES.get((self.options.steps or 0, self.path.partition("?")[0]), fake_server.Handler.do_GET)(self)

    def complete(self, request: dict[str, Any]) -> None:
        if self.options.steps == REFUSES:
            self.answer({"error": f"{' '.join(self.secrets)} {TELLS}"}, 500)
        else:
            super().complete(request)


def resolved(argv: Sequence[str]) -> dict[str, Any]:
    """The arguments as SGLang reports them, keys included."""
    pairs = [(flag, value) for flag, value in itertools.pairwise(argv) if flag.startswith("--") and value[:1] != "-"]
    return {flag[2:].replace("-", "_"): int(value) if value.isdecimal() else value for flag, value in pairs}


def cut_in_a_secret(handler: Any) -> None:
    """A refusal of which as much is repeated as ends within each of the secrets in turn."""
    handler.answer("x" * (CUT - 12) + handler.secrets[0], 500)


def a_name(handler: Any) -> None:
    handler.answer({"data": [{"id": f"{' '.join(handler.secrets)} {TELLS}"}]})


DIES, REFUSES, CUTS, NAMES = 2, 3, 4, 5
"""Lengths of chains, by what their servers do."""
PLACES: dict[tuple[int, str], Callable[[Any], None]] = {
    (CUTS, "/metrics"): cut_in_a_secret,
    (NAMES, "/v1/models"): a_name,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", dest="model")
    parser.add_argument("--speculative-num-steps", dest="steps", type=int)
    parser.add_argument("--api-key")
    parser.add_argument("--admin-api-key")
    options, _ = parser.parse_known_args(
        namespace=argparse.Namespace(backend="", length=0, fail_every=0, die_after=0, log="")
    )
    Handler.options = options
    Handler.secrets = (options.api_key, options.admin_api_key, os.environ["HF_TOKEN"], os.environ["DATABASE"])
    print(f"server_args=ServerArgs(api_key={options.api_key!r}, env={json.dumps(dict(os.environ))})", flush=True)
    if options.steps == DIES:
        time.sleep(0.2)
        sys.exit(f"ValueError: cannot reach the database: {' '.join(Handler.secrets)} {TELLS}")
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
