"""What the API server writes into a resource of six values, and that it means the same as what was applied."""

import json
from typing import Any

from tests.support.apiserver import Running
from tests.unit.api.test_defaults import smallest

from paceline import api

WRITTEN: dict[str, Any] = {
    "suspend": False,
    "accelerator": {"count": 1, "nodes": 1},
    "pools": [{"name": "main", "load": [{"concurrency": [1, 16]}]}],
    "promotion": {
        "mode": "Automatic",
        "untilDecided": "Baseline",
        "surge": "Auto",
        "revisionHistoryLimit": 3,
        "progressDeadline": "30m",
    },
    "guard": {"action": "Notify", "acceptanceDrop": "25%", "window": "10m", "source": "Pods"},
    "cache": {"keepRevisions": 2, "claim": {"accessModes": ["ReadWriteMany"], "size": "60Gi"}},
}


def test_constant_defaults_are_seen_in_the_object(apiserver: Running) -> None:
    manifest = smallest()
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=manifest)
    stored = json.loads(apiserver.kubectl("get", "specdep", "qwen3-8b", "-o", "json").stdout)
    apiserver.kubectl("delete", "specdep", "qwen3-8b")
    spec = stored["spec"]
    found = {key: spec[key] for key in WRITTEN} | {
        "accelerator": {key: spec["accelerator"][key] for key in ("count", "nodes")}
    }
    assert found == WRITTEN
    assert api.deployment(stored) == api.deployment(manifest)
