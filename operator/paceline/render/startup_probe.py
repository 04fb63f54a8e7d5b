"""The time that a server may take to start: from the current spec, not from the kept rendering's. It does not shape a
server, so no revision depends on it."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from paceline.core.manifest import Manifest
from paceline.engines.pod_template import SERVER

PROBE = "startupProbe"


def with_patience(kept: Mapping[str, Any], deadline: timedelta) -> Manifest:
    """The kept rendering with a startup probe that lasts until `deadline`; unchanged if it has none."""
    probe = startup_probe(kept["template"])
    if probe is None:
        return dict(kept)
    tries = math.ceil(deadline.total_seconds() / probe.get("periodSeconds", 10))  # the API's default
    return with_tries(kept, tries)


def with_tries(kept: Mapping[str, Any], tries: int) -> Manifest:
    """The kept rendering with this many tries of the startup probe."""
    template = kept["template"]
    containers = [
        {**one, PROBE: {**one[PROBE], "failureThreshold": tries}} if one["name"] == SERVER and PROBE in one else one
        for one in template["spec"]["containers"]
    ]
    return {**kept, "template": {**template, "spec": {**template["spec"], "containers": containers}}}


def startup_probe(template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The server's startup probe in a pod template."""
    return next((one.get(PROBE) for one in template["spec"]["containers"] if one["name"] == SERVER), None)


def has_own(over: Mapping[str, Any]) -> bool:
    """Whether the user's engine.podTemplate has its own startup probe."""
    return startup_probe({"spec": {"containers": over.get("spec", {}).get("containers", ())}}) is not None
