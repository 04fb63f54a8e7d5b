"""Offline preflight: `paceline validate --models DIR` checks manifests against models on this machine.

DIR is a hub client's cache (`models--OWNER--NAME/snapshots/COMMIT`, as in ~/.cache/huggingface/hub), or has the folders
OWNER/NAME and BUCKET/PREFIX, and for pvc://CLAIM/PATH the folder PATH. It reads config.json and the headers of the
safetensors files, no weights.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.api import Problem
from paceline.core import DeploymentSpec
from paceline.measure.models import folder
from paceline.plan.deployment.checks import each_once, model_problems
from paceline.plan.deployment.models import models_of
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError


def preflight(spec: DeploymentSpec, written: Mapping[str, Any], models: Path) -> Iterator[Problem]:
    """The operator's preflight findings: problems, and notes, which do not block. A missing model is a problem, too."""
    known = {}
    for model in models_of(spec):
        place = folder(model, models)
        if place is None:
            yield Problem(path="", message=f"{model.source} at {model.revision} is not below {models}: download it")
            continue
        try:
            known[model.source] = facts_of(model.source, place)
        except (FetchError, OSError) as error:
            yield Problem(path="", message=" ".join(str(error).split()))
    for text, blocks in each_once(model_problems(spec, written, known)):
        path, _, message = text.partition(": ")
        yield Problem(path=path, message=message, note=not blocks)
