"""Reads deployments and runs from a file for other commands. Deployments have their profile's values filled in."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from paceline import api
from paceline.api.text import documents
from paceline.cli.options import reason
from paceline.cli.profiles import DEPLOYMENT_KIND, PROFILE, is_a, naming, profile_for, resolved_profile
from paceline.cli.validate import line, of_text, read_file, wrong
from paceline.core.manifest import Manifest

RUN = "BenchmarkRun"


class RefusedError(ValueError):
    """Raised for a file with errors; has the lines that `paceline validate` would print."""


def is_deployment_or_run(one: Any) -> bool:
    """Whether it is a deployment or a run."""
    return is_a(DEPLOYMENT_KIND, one) or is_a(RUN, one)


def ours(file: str) -> tuple[Manifest, ...]:
    """The deployments and runs of `everything`."""
    return tuple(manifest for manifest in everything(file) if is_deployment_or_run(manifest))


def everything(file: str, beside: Collection[Any] = ()) -> tuple[Manifest, ...]:
    """All objects of a file (`-` is stdin); all deployments and runs are valid. The file must have at least one, or a
    profile if `beside` has objects of a cluster, where deployments also find their profile. Raises RefusedError."""
    if Path(file).is_dir():
        raise RefusedError(f"{file}: must be a file, not a directory")
    try:
        text = read_file(file)
    except (OSError, ValueError) as error:
        raise RefusedError(f"{file}: {reason(error)}") from error
    if problems := [line(file, problem) for problem in of_text(text, beside) if not problem.note]:
        raise RefusedError("\n".join(problems))
    manifests = tuple(documents(text))
    if not any(is_deployment_or_run(one) or (beside and is_a(PROFILE, one)) for one in manifests):
        raise RefusedError(f"{file}: it has neither a SpeculativeDeployment nor a BenchmarkRun")
    objects = [*manifests, *beside]
    return tuple(_as_stored(file, one, objects) if is_deployment_or_run(one) else one for one in manifests)


def concerned(manifests: Collection[Any], beside: Collection[Any]) -> list[Manifest]:
    """The deployments in `beside` that name a profile in the file and are not in the file. Raises RefusedError."""
    there = {_name(one) for one in manifests if is_a(DEPLOYMENT_KIND, one)}
    profiles = [one for one in manifests if is_a(PROFILE, one)]
    found = [one for one in naming(profiles, beside) if _name(one) not in there]
    faults = [line(_name(one), fault) for one in found for fault in wrong(one, profiles)]
    if faults:
        raise RefusedError("\n".join(faults))
    return [_as_stored("", one, profiles) for one in found]


def _as_stored(file: str, manifest: Manifest, objects: Collection[Any]) -> Manifest:
    name = api.profile_of(manifest)
    if not name:
        return api.stored(manifest)
    if (profile := profile_for(manifest, objects)) is None:
        raise RefusedError(f"{file}: spec.benchmark.profileRef.name: add BenchmarkProfile {name} to the file")
    return resolved_profile(manifest, profile)


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
