"""SGLang: how an arm becomes a server of the version that the image speaks, and what is refused before.

`versions` says what each release speaks, `flags` and `data/sglang-*.json` which arguments it takes, `rules` what is
refused and why. Sources: the wheels of 0.4.5, 0.5.6 and 0.5.23, read; the last also run.
"""

from collections.abc import Mapping

from paceline.core import Server
from paceline.engines import bounds as limits
from paceline.engines.adapter import Adapter, Bound
from paceline.engines.sglang import custom
from paceline.engines.sglang.argv import JIT_CACHE, PORT, argv, draft_tokens, env, expected
from paceline.engines.sglang.capabilities import CAPABILITIES
from paceline.engines.sglang.flags import eagle3_hooks, flag_name, flag_value
from paceline.engines.sglang.owned import COMPARED, MOVED
from paceline.engines.sglang.probe import probe
from paceline.engines.sglang.rules import refusals
from paceline.engines.sglang.versions import is_newer, neighbours, spoken

__all__ = ["ADAPTER", "flag_name", "flag_value"]


def eagle3_targets(version: str) -> frozenset[str] | None:
    """Of a version between two known ones, those of either; a newer one may have gained any."""
    if is_newer(version):
        return None
    return frozenset[str]().union(*(eagle3_hooks(row.version) for row in neighbours(version)))


BOUNDS = {"--max-running-requests": "requests", "--context-length": "context", "--max-total-tokens": "tokens"}


def bounds(server: Server) -> Mapping[str, Bound]:
    return limits.found(limits.words(server.engine.args), BOUNDS)


ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    port=PORT,
    argv=argv,
    env=env,
    expected=expected,
    draft_tokens=draft_tokens,
    compared=COMPARED,
    moved=lambda arms: (*MOVED, *custom.moved(arms)),
    refusals=refusals,
    bounds=bounds,
    eagle3_targets=eagle3_targets,
    ready_path=lambda version: spoken(version).ready,
    ready_timeout_seconds=lambda version: spoken(version).ready_seconds,
    health_path="/health",
    health_timeout_seconds=25,  # /health generates a token: never under a second, up to 20
    probe=probe,
    jit_cache=JIT_CACHE,
)
