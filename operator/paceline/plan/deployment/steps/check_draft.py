"""The draft fits its target, before a GPU is taken."""

from collections.abc import Iterator
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.core import DeploymentSpec
from paceline.plan.deployment.pins import named_models
from paceline.plan.deployment.preflight import problems
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def check_draft(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block while models and spec do not fit each other, as far as the prefetch's facts show; note what is worth
    knowing."""
    prefetch = snapshot.prefetch
    if prefetch is None:
        return StepResult()
    every = problems(prefetch.spec, snapshot.manifest["spec"], prefetch.facts)
    if blocking := [text for text, blocks in every if blocks]:
        return StepResult(causes=(Cause(Reason.PreflightFailed, None, "; ".join(blocking)),), blocks=True)
    return StepResult(notes=(*(text for text, _ in every), *_unread(prefetch.spec)))


def _unread(spec: DeploymentSpec) -> Iterator[str]:
    """What no fact is known of: nobody opens an image before its servers do."""
    for model in named_models(spec):
        if model.address.digest:
            yield f"{model.source}: an image's files are not read, so its sizes, layers and memory are not checked"
