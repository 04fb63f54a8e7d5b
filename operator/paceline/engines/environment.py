"""The environment of a server's container: common variables, the engine's, its keys, and the user's."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.core import Server
from paceline.core.names import MODELS


def environment(
    server: Server, own: Mapping[str, str], keys: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """Equal on all arms; `own` is the engine's. A user's variable with the same name wins."""
    ours = {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": f"{MODELS}/hub",
        **own,
        "TOKENIZERS_PARALLELISM": "false",
    }
    theirs = {variable["name"] for variable in server.engine.env}
    return (
        *({"name": name, "value": value} for name, value in ours.items() if name not in theirs),
        *keys,
        *server.engine.env,
    )
