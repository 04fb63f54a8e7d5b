"""A story's deployment as `kubectl paceline` looks at it."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.support.world import World

from paceline.cli.live.deployment import ObservedDeployment, observe_deployment


def looked_at(world: World, *, into_the_round: timedelta = timedelta(0)) -> ObservedDeployment:
    """As it is now; rounds under way began so long ago."""
    (manifest,) = world.cluster.of("SpeculativeDeployment")
    started = {job["metadata"]["name"]: world.cluster.now - into_the_round for job in world.under_way("round")}
    return observe_deployment(manifest, world.all_runs(), started, world.cluster.now)


def numbered(value: Any) -> Any:
    """With hashes numbered in the order of their coming."""
    seen: dict[str, str] = {}

    def plain(value: Any) -> Any:
        match value:
            case str():
                return re.sub(r"\b[0-9a-f]{10}\b", lambda found: seen.setdefault(found[0], f"#{len(seen) + 1}"), value)
            case Mapping():
                return {key: plain(one) for key, one in value.items()}
            case list():
                return [plain(one) for one in value]
        return value

    return plain(value)
