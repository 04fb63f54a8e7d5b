"""Polls a deployment."""

import asyncio
import sys
from collections.abc import AsyncIterator

from paceline.cli.live.deployment import ObservedDeployment
from paceline.cli.live.errors import said
from paceline.cli.live.lookup import load_deployment
from paceline.kube import Api, TooManyRequests, Unavailable

_SECONDS = 2.0
"""Seconds between two looks."""


async def looks(api: Api, namespace: str, name: str, every: float = _SECONDS) -> AsyncIterator[ObservedDeployment]:
    """The current deployment, every `every` seconds. If the API server does not answer, it is asked again."""
    silent = False
    while True:
        try:
            yield await load_deployment(api, namespace, name)
            silent = False
        except (Unavailable, TooManyRequests) as error:
            if not silent:
                print(f"{said(error)}; asking again", file=sys.stderr)
            silent = True
        await asyncio.sleep(every)
