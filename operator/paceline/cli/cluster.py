"""The cluster that kubectl speaks to, for commands that read from it."""

import argparse
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import kubernetes.aio.config
import yaml

from paceline.controller.kinds import RECONCILED_KINDS
from paceline.core.manifest import Manifest
from paceline.kube import Forbidden, NotFound, Transport, connect

_TRIES = 5
"""How often a refused list is tried: an API server that has just learnt of a kind rejects its first lists and asks to
retry after a second."""
config: Any = kubernetes.aio.config
"""Any: half of its functions are untyped."""
_UNREADABLE = (
    *(config.ConfigException, yaml.YAMLError, OSError),
    *(LookupError, TypeError, ValueError, AttributeError, RecursionError),
)
"""Errors of the library for a file that is not a kubeconfig; an empty one causes a TypeError."""


@asynccontextmanager
async def connection(args: argparse.Namespace) -> AsyncIterator[tuple[Transport, str]]:
    """The selected API server and namespace. Raises ValueError if no kubeconfig names them."""
    if missing := _missing(args.kubeconfig):
        raise ValueError(f"no kubeconfig: {missing} does not exist; name one with --kubeconfig or $KUBECONFIG")
    try:
        namespace = args.namespace or _namespace(args.kubeconfig, args.context)
        transport = await connect(args.kubeconfig, context=args.context, kinds=RECONCILED_KINDS, tries=_TRIES)
    except _UNREADABLE as error:
        if missing := _missing(args.kubeconfig):
            raise ValueError(
                f"no kubeconfig: {missing} does not exist; name one with --kubeconfig or $KUBECONFIG"
            ) from error
        why = str(error) if isinstance(error, config.ConfigException) else f"cannot be read ({type(error).__name__})"
        raise ValueError(
            f"--kubeconfig: {' '.join(why.split()):.500}; name a cluster's file with --kubeconfig or $KUBECONFIG, "
            "its context with --context"
        ) from error
    async with transport:
        yield transport, namespace


async def objects(args: argparse.Namespace, kinds: Collection[str]) -> list[Manifest]:
    """All objects of these kinds in the selected namespace; none of a kind that the cluster lacks, or that may not be
    listed."""
    found: list[Manifest] = []
    async with connection(args) as (api, namespace):
        for resource in RECONCILED_KINDS.values():
            if resource.kind in kinds:
                with suppress(NotFound, Forbidden):
                    found += (await api.list(resource, namespace)).items
    return found


def _missing(kubeconfig: str | None) -> str:
    """The kubeconfig files, if none of them exists."""
    files = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    there = any(Path(file).expanduser().exists() for file in files.split(os.pathsep))
    return "" if there else files


def _namespace(kubeconfig: str | None, context: str | None) -> str:
    """The context's namespace, chosen as kubectl does."""
    contexts, current = config.list_kube_config_contexts(kubeconfig or os.environ.get("KUBECONFIG"))
    meant = next((one for one in contexts if one["name"] == context), current)
    return str(meant["context"].get("namespace") or "default")
