"""`paceline hub`: serve the generated repositories."""

import argparse
from typing import Any

from paceline.hub import application, generated


def add(subparsers: "argparse._SubParsersAction[Any]") -> None:
    parser = subparsers.add_parser(
        "hub",
        help="serve small generated models over the Hugging Face hub's protocol",
        description="Serve small generated models over the Hugging Face hub's protocol, for the demo and the tests. "
        "Point clients at it with HF_ENDPOINT=http://HOST:PORT.",
    )
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    from aiohttp import web

    repositories = generated()
    for name, repository in repositories.items():
        print(f"{repository.history[-1].commit} {name}", flush=True)
    web.run_app(application(repositories), host=args.host, port=args.port)
    return 0
