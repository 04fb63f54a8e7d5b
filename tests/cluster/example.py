"""examples/qwen3-coder-next-upstream.yaml as a story needs it: one pool, two rounds of a quarter of a minute.

Upstream, as the fork's release counts no verify calls, and so cannot tell a head of which nothing is accepted.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from tests.support.kubernetes import Manifest
from tests.support.overlay import EXAMPLE, OVERLAY, merged
from tests.support.queries import POOL

UPSTREAM = EXAMPLE.with_stem("qwen3-coder-next-upstream")
WIDE = {"numSteps": 3, "topK": 4, "numDraftTokens": 8}


def emulated(**options: str) -> list[Manifest]:
    """An engine's environment: the emulator starts fast and measures the same each time, and `options`, if any."""
    told = {"STARTUP_SECONDS": "0.5", "NOISE_CV": "0", **options}
    return [{"name": f"PACELINE_EMULATE_{name}", "value": value} for name, value in told.items()]


IMAGE = "localhost/paceline-sglang-emulator:dev"
WARM = [{"name": f"warm-{number}", "image": IMAGE, "command": ["true"]} for number in range(4)]
SIX_CONTAINERS: Any = {"podTemplate": {"spec": {"initContainers": WARM}}}
"""A round's pod then has six: the kubelet would keep 2 KiB of a container's termination message."""


def small(name: str, hub: str, **spec: Any) -> Manifest:
    """One GPU and one candidate, which is 1.39x; `spec` over that. What is a list is replaced as a whole."""
    overlay = {
        "metadata": {"name": name},
        "spec": {
            "engine": {"env": emulated()},
            "accelerator": {"count": 1},
            "cache": {"env": [{"name": "HF_ENDPOINT", "value": hub}, {"name": "HF_HUB_DISABLE_XET", "value": "1"}]},
            "candidates": [candidate()],
            "pools": [pool()],
            # 144 tokens: without acceptance as many verify calls, more than NothingAccepted needs.
            "benchmark": {
                "datasets": [{"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 24}],
            },
            "gate": {
                "confidence": "80%",
                "decideAfterRounds": [2],
            },  # two rounds of a noise below 1 % are enough to show 39 %
        },
    }
    found: Manifest = merged(merged(merged(_read(UPSTREAM), _read(OVERLAY)), overlay), {"spec": spec})
    return found


def pool(*, replicas: int = 1) -> Manifest:
    return {"name": POOL, "replicas": replicas, "load": [{"concurrency": [1]}]}


def candidate(tree: Mapping[str, int] = WIDE) -> Manifest:
    return {"name": "wide", "tree": dict(tree)}


def _read(path: Any) -> Manifest:
    found: Manifest = yaml.safe_load(path.read_text())
    return found
