"""What the API server writes into a resource of six values, and that it means the same as what was applied."""

import json
from typing import Any

from tests.support.apiserver import Running
from tests.unit.api.test_defaults import smallest

from paceline import api

WRITTEN: dict[str, Any] = {
    "suspend": False,
    "accelerator": {"count": 1, "nodes": 1},
    "promotion": {
        "changes": "Gated",
        "maxOutputChange": "10%",
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


def test_what_nobody_has_written_does_not_stay_beside_what_somebody_writes(apiserver: Running) -> None:
    """A default within a list that is merged would be nobody's, and server-side apply would keep it for ever."""
    manifest = smallest()
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=manifest)
    spec = manifest["spec"]
    spec["pools"] = [{"name": "latency", "load": [{"concurrency": [1]}]}]
    spec["cache"]["claim"] = {"name": "other", "size": "60Gi", "accessModes": ["ReadWriteOnce"]}
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=manifest)
    stored = json.loads(apiserver.kubectl("get", "specdep", "qwen3-8b", "-o", "json").stdout)["spec"]
    apiserver.kubectl("delete", "specdep", "qwen3-8b")
    assert [pool["name"] for pool in stored["pools"]] == ["latency"]
    assert stored["cache"]["claim"]["accessModes"] == ["ReadWriteOnce"]
