"""Preflight at the desk: `paceline validate --models DIR` holds manifests against models that are on this machine.

DIR is a hub client's cache (`models--OWNER--NAME/snapshots/COMMIT`, as in ~/.cache/huggingface/hub), or has the folders
OWNER/NAME, and for pvc://CLAIM/PATH the folder PATH. config.json and the headers of the safetensors files are read,
no weights.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.api import Problem
from paceline.core import DeploymentSpec, Model, Scheme
from paceline.plan.deployment.pins import models_of
from paceline.plan.deployment.preflight import problems
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError


def preflight(spec: DeploymentSpec, written: Mapping[str, Any], models: Path) -> Iterator[Problem]:
    """What the operator would find once the prefetch is done; a model that is not here is a problem, too."""
    known = {}
    for model in models_of(spec):
        folder = _folder(model, models)
        if folder is None:
            yield Problem(path="", message=f"{model.source} at {model.revision} is not below {models}: download it")
            continue
        try:
            known[model.source] = facts_of(model.source, folder)
        except (FetchError, OSError) as error:
            yield Problem(path="", message=" ".join(str(error).split()))
    for text, blocks in problems(spec, written, known):
        if blocks:
            path, _, message = text.partition(": ")
            yield Problem(path=path, message=message)


def _folder(model: Model, models: Path) -> Path | None:
    source = model.address
    if source.scheme is Scheme.CLAIM:
        places = [models / source.path]
    else:
        cached = models / f"models--{source.name.replace('/', '--')}"
        pinned = cached / "refs" / model.revision
        commit = pinned.read_text().strip() if pinned.is_file() else model.revision
        places = [cached / "snapshots" / commit, models / source.name]
    return next((place for place in places if (place / "config.json").is_file()), None)
