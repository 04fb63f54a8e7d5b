"""`paceline-hub`, or `python -m paceline_emulator.hub`: serve the generated repositories."""

import argparse
from collections.abc import Sequence

from aiohttp import web

from paceline_emulator.hub.models import generated, invented
from paceline_emulator.hub.server import application


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="paceline-hub",
        description="Serve small generated models over the Hugging Face hub's protocol, for the demo and the tests. "
        "Point clients at it with HF_ENDPOINT=http://HOST:PORT.",
    )
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--invent",
        action="append",
        default=[],
        metavar="OWNER/NAME=KIND:SIZE",
        help="serve an invented model of this name, too, if there is none: KIND is target, "
        "target-with-mtp or a head's algorithm, SIZE billions of the target's parameters",
    )
    args = parser.parse_args(argv)
    repositories = generated()
    for name, kind, size in map(_wanted, args.invent):
        repositories.setdefault(name, invented(kind, size, name))
    for name, repository in repositories.items():
        print(f"{repository.history[-1].commit} {name}", flush=True)
    web.run_app(application(repositories), host=args.host, port=args.port)
    return 0


def _wanted(text: str) -> tuple[str, str, float]:
    name, _, what = text.partition("=")
    kind, _, size = what.partition(":")
    return name, kind, float(size)
