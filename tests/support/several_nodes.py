"""A server over several nodes."""

from dataclasses import replace
from typing import Any

from tests.support.example import server

from paceline.core import Server


def over(nodes: int, **overlay: Any) -> Server:
    found = server()
    return replace(
        found,
        accelerator=replace(found.accelerator, nodes=nodes, tensor_parallel_size=4 * nodes),
        engine=replace(found.engine, pod_template=overlay),
    )
