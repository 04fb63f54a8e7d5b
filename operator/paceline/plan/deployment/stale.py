"""Evidence that has become stale although the spec still asks the same question: it is too old, or the tag of the image
was moved and the servers run another image than was measured (decision 0050)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.core import Trigger
from paceline.core.names import TOKEN
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.servers import Servers
from paceline.plan.images import differ, digest
from paceline.plan.objects import annotations
from paceline.plan.step import parse_time

SHOWN = 19
"""Characters of a digest in a sentence: `sha256:` and twelve digits."""


def is_aged(run: Run, oldest: datetime) -> bool:
    """Rounds that were judged again are as old as they are."""
    ends = [end for end in (run.completion_time, run.status.first_measured_time) if end]
    return bool(ends) and min(map(parse_time, ends)) < oldest


def moved_image(run: Run, wanted: Mapping[str, Any], servers: Servers | None) -> str:
    """The sentence for a run that measured another image than the servers run now, both by the name that the spec has.
    "" if they are the same or cannot be compared, and for the run that was made because of this very image: what it
    measured is what its nodes have, and another run would find no more."""
    named = wanted["engine"]["image"]
    if servers is None or run.spec["engine"]["image"] != named or not differ(run.image, servers.image):
        return ""
    if made_for(run) == digest(servers.image):
        return ""
    return (
        f"the image changed: {named} was {digest(run.image)[:SHOWN]} in {run.name}, and its servers run "
        f"{digest(servers.image)[:SHOWN]}"
    )


def made_for(run: Run) -> str:
    """The digest of the servers' image because of which the run was made; "" if it has another reason."""
    return annotations(run.manifest).get(TOKEN, "") if run.trigger == Trigger.STALE else ""
